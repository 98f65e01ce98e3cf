#include "tests/apps/fetch/http_server.hpp"

#include <charconv>
#include <string_view>
#include <utility>  // Asio 1.74's awaitable.hpp uses std::exchange and does not include it

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

namespace troupe::fetch::testing {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using SystemError = boost::system::error_code;

std::string field_of(const http::request<http::empty_body>& request, http::field field) {
  const auto value = request[field];
  return {value.data(), value.size()};
}

std::string text_of(const Reply& reply) {
  auto text = fmt::format("HTTP/1.1 {} Text\r\n", reply.status);
  for (const auto& [name, value] : reply.fields) text += fmt::format("{}: {}\r\n", name, value);
  if (reply.says_length) text += fmt::format("Content-Length: {}\r\n", reply.body.size());
  return text + "Connection: close\r\n\r\n" + reply.body.substr(0, reply.cut_after);
}

}  // namespace

struct HttpServer::Impl {
  Impl(std::function<Reply(const Request&)> handler, const std::optional<ServerFiles>& tls, const std::string& listen)
      : handler_(std::move(handler)),
        with_tls_(tls.has_value()),
        acceptor_(context_, {asio::ip::make_address(listen), 0}) {
    if (tls) {
      security_.use_certificate_chain_file(tls->certificate);
      security_.use_private_key_file(tls->key, asio::ssl::context::pem);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) accept_one(stop);
    });
  }
  ~Impl() {
    thread_.request_stop();
    // Ends a waiting accept, and a connection whose client stays.
    SystemError ignored;
    tcp::socket(context_).connect(acceptor_.local_endpoint(), ignored);
    {
      const std::scoped_lock lock(mutex_);
      if (open_ != nullptr) open_->shutdown(tcp::socket::shutdown_both, ignored);
    }
    thread_.join();
  }

  void accept_one(const std::stop_token& stop) {
    SystemError error;
    tcp::socket socket(context_);
    acceptor_.accept(socket, error);
    if (error || stop.stop_requested()) return;
    {
      const std::scoped_lock lock(mutex_);
      open_ = &socket;
    }
    if (with_tls_) {
      asio::ssl::stream<tcp::socket&> stream(socket, security_);
      stream.handshake(asio::ssl::stream_base::server, error);
      if (!error) serve(stream, socket);
    } else {
      serve(socket, socket);
    }
    const std::scoped_lock lock(mutex_);
    open_ = nullptr;
  }

  template <class Stream>
  void serve(Stream& stream, tcp::socket& socket) {
    SystemError error;
    beast::flat_buffer buffer;
    http::request<http::empty_body> parsed;
    http::read(stream, buffer, parsed, error);
    if (error) return;
    const Request request{.method = std::string(parsed.method_string()),
                          .target = std::string(parsed.target()),
                          .host = field_of(parsed, http::field::host),
                          .range = field_of(parsed, http::field::range)};
    {
      const std::scoped_lock lock(mutex_);
      requests_.push_back(request);
    }
    const auto reply = handler_(request);
    char none = 0;
    if (!reply.silent) asio::write(stream, asio::buffer(reply.raw.empty() ? text_of(reply) : reply.raw), error);
    if (reply.silent || reply.stalls) {
      if (!error) stream.read_some(asio::buffer(&none, 1), error);  // ends when the client leaves
      return;
    }
    if constexpr (!std::is_same_v<Stream, tcp::socket>) stream.shutdown(error);
    socket.shutdown(tcp::socket::shutdown_send, error);
    while (!error) socket.read_some(asio::buffer(&none, 1), error);  // closing earlier may lose what was sent
  }

  const std::function<Reply(const Request&)> handler_;
  const bool with_tls_;
  asio::io_context context_;
  asio::ssl::context security_{asio::ssl::context::tls_server};
  tcp::acceptor acceptor_;
  mutable std::mutex mutex_;  // of the two below
  std::vector<Request> requests_;
  tcp::socket* open_ = nullptr;
  std::jthread thread_;
};

HttpServer::HttpServer(std::function<Reply(const Request&)> handler, const std::optional<ServerFiles>& tls,
                       const std::string& listen)
    : impl_(std::make_unique<Impl>(std::move(handler), tls, listen)) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return impl_->acceptor_.local_endpoint().port(); }
std::string HttpServer::address() const {
  const auto host = impl_->acceptor_.local_endpoint().address().to_string();
  return fmt::format("{}://{}:{}", impl_->with_tls_ ? "https" : "http", host, port());
}
std::vector<Request> HttpServer::requests() const {
  const std::scoped_lock lock(impl_->mutex_);
  return impl_->requests_;
}

Reply file_reply(const Request& request, const std::string& contents) {
  constexpr std::string_view kUnit = "bytes=";
  if (!request.range.starts_with(kUnit)) return {.body = contents};
  std::size_t first = 0;
  const auto digits = std::string_view(request.range).substr(kUnit.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), first);
  if (first >= contents.size()) return {.status = 416};
  return {.status = 206,
          .fields = {{"Content-Range", fmt::format("bytes {}-{}/{}", first, contents.size() - 1, contents.size())}},
          .body = contents.substr(first)};
}

std::uint16_t closed_port() {
  asio::io_context context;
  const tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  return acceptor.local_endpoint().port();
}

}  // namespace troupe::fetch::testing
