#include "service/http/session.hpp"

#include <array>
#include <ctime>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

#include "service/http/answering.hpp"
#include "service/http/head.hpp"
#include "service/http/outgoing.hpp"

namespace troupe::service {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using beast::error_code;
using net::ip::tcp;
using Plain = beast::tcp_stream;
using Secure = beast::ssl_stream<beast::tcp_stream>;

constexpr std::size_t kBuffer = std::size_t{128} << 10;         // of what a client has sent and no one has read
constexpr std::size_t kMostEventBytes = std::size_t{64} << 10;  // written at once
constexpr std::chrono::milliseconds kParting{1'000};            // for a client to read a last answer

template <class Stream>
class Session final : public OpenSession, public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <class... Tls>
  Session(tcp::socket socket, std::string peer, Connections& connections, Welcome welcome, Tls&... tls)
      : stream_(std::move(socket), tls...),
        peer_(std::move(peer)),
        connections_(connections),
        limits_(connections.setup.limits),
        welcome_(welcome),
        timer_(connections.io) {
    connections_.sessions.insert(this);
    ++connections_.counters.open;
  }

  ~Session() override {
    let_go_of_events();
    let_go(upload_, connections_);
    connections_.sessions.erase(this);
    --connections_.counters.open;
    if (welcome_ == Welcome::served) connections_.addresses.leave(peer_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() {
    lowest().expires_after(limits_.header_time);
    if constexpr (std::is_same_v<Stream, Secure>)
      stream_.async_handshake(net::ssl::stream_base::server,
                              [self = this->shared_from_this()](const error_code& error) {
                                if (!error) self->begin();
                              });
    else
      begin();
  }

  void close() override {
    closed_ = true;
    let_go_of_events();
    let_go(upload_, connections_);
    timer_.cancel();
    error_code ignored;
    lowest().socket().close(ignored);
  }

 private:
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  void begin() {
    if (welcome_ == Welcome::served) return read_header();
    keep_alive_ = false;
    respond(refusal_of(welcome_));
  }

  void read_header() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser_->body_limit(UINT64_MAX);  // the path decides
    if (!first_) lowest().expires_after(limits_.idle_time);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](const error_code& error, std::size_t) { self->got_header(error); });
  }

  void got_header(const error_code& error) {
    first_ = keep_alive_ = false;
    if (auto refusal = refusal_of(error)) return respond(std::move(*refusal));
    if (error) return part();
    request_ = request_of(parser_->get(), peer_, std::is_same_v<Stream, Secure>);
    is_head_ = request_.method == Method::head;
    const auto length = parser_->content_length().value_or(0);
    const auto most = most_body_bytes(request_, length, connections_);
    if (length > most) return refuse_body(most);
    const bool keep_alive = parser_->get().keep_alive();
    if (auto refusal = admit(request_, connections_, match_)) {
      keep_alive_ = keep_alive && parser_->is_done();  // a body that nobody reads would be taken for the next request
      return respond(std::move(*refusal));
    }
    keep_alive_ = keep_alive;
    if (match_.route->open_body) return open_sink();
    if (parser_->is_done()) return dispatch();
    parser_->body_limit(limits_.body_bytes);
    lowest().expires_after(limits_.body_time);
    expect_body(&Session::read_body);
  }

  void expect_body(void (Session::*read)()) {
    const auto& request = upload_ ? upload_->request : request_;
    if (request.header("expect").empty()) return (this->*read)();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    net::async_write(stream_, net::buffer(kContinue),
                     [self = this->shared_from_this(), read](const error_code& failed, std::size_t) {
                       if (!failed) ((*self).*read)();
                     });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](const error_code& error, std::size_t) {
                       if (error == http::error::body_limit) return self->refuse_body(self->limits_.body_bytes);
                       if (error) return self->part();
                       self->request_.body = std::move(self->parser_->get().body());
                       self->dispatch();
                     });
  }

  void refuse_body(std::uint64_t most) {
    keep_alive_ = false;
    respond(failure(413, "usage", fmt::format("the body has more than {} bytes", most)));
  }

  // --- a body that goes to a sink: a piece is read when the sink has taken the one before it

  void open_sink() {
    const auto most = match_.route->body_bytes;
    if (parser_->content_length().value_or(0) > most) return refuse_body(most);
    pieces_.emplace(std::move(*parser_));
    pieces_->body_limit(most);
    upload_ = std::make_shared<Upload>(Upload{.request = std::move(request_)});
    const auto given = pieces_->content_length();
    const auto length = given ? std::optional<std::uint64_t>(*given) : std::nullopt;
    let_worker([route = match_.route, upload = upload_, length] { return upload->open(*route, length); },
               [](Session& self) { self.expect_body(&Session::read_piece); });
  }

  void read_piece() {
    if (pieces_->is_done()) return end_upload();
    lowest().expires_after(limits_.body_time);
    auto& body = pieces_->get().body();
    body.data = upload_->piece.data();
    body.size = upload_->piece.size();
    http::async_read(
        stream_, buffer_, *pieces_,
        [self = this->shared_from_this()](const error_code& error, std::size_t) { self->got_piece(error); });
  }

  void got_piece(const error_code& error) {
    if (closed_) return;
    if (error == http::error::body_limit) return refuse_body(match_.route->body_bytes);
    if (error && error != http::error::need_buffer) return part();
    const auto filled = upload_->piece.size() - pieces_->get().body().size;
    if (filled == 0) return read_piece();
    let_worker([upload = upload_, filled] { return upload->write(filled); }, [](Session& self) { self.read_piece(); });
  }

  void end_upload() {
    request_ = std::move(upload_->request);
    upload_.reset();
    dispatch();
  }

  template <class Work>
  void let_worker(Work work, void (*then)(Session&)) {
    auto done = before_deadline(limits_.answer_time, "the service could not store the body in time",
                                [then](Session& self, std::optional<Response> refusal) {
                                  if (!refusal) return then(self);
                                  self.keep_alive_ = false;
                                  self.respond(std::move(*refusal));
                                });
    work_on_worker(Where::uploads, connections_, std::move(work), std::move(done));
  }

  // --- answers

  /// What takes the result of a worker and calls `then`, once: with 503 after `time`.
  std::function<void(std::optional<Response>)> before_deadline(
      std::chrono::milliseconds time, const char* late, std::function<void(Session&, std::optional<Response>)> then) {
    const auto number = ++call_;
    const std::weak_ptr<Session> weak = this->shared_from_this();
    const auto done = [weak, number, then = std::move(then)](std::optional<Response> response) {
      const auto self = weak.lock();
      if (!self || self->closed_ || self->call_ != number) return;  // the deadline was earlier
      ++self->call_;
      self->timer_.cancel();
      then(*self, std::move(response));
    };
    timer_.expires_after(time);
    // The worker must not be the last to hold the session: it would end on the wrong thread.
    timer_.async_wait([self = this->shared_from_this(), number, done, late](const error_code& error) {
      if (error || self->call_ != number) return;
      let_go(self->upload_, self->connections_);  // the worker may never come to it: the answer does not wait
      done(failure(503, "timeout", late));
    });
    return done;
  }

  void dispatch() {
    // The handler goes on: who asks for a change again may make it twice.
    const bool changes = request_.method != Method::get && request_.method != Method::head;
    const auto* const late = changes ? "no answer within the deadline: the change may still be made, so look first"
                                     : "no answer within the deadline: try again later";
    auto done = before_deadline(
        match_.route->answer_time.value_or(limits_.answer_time), late,
        [](Session& self, std::optional<Response> response) { self.respond(std::move(response).value()); });
    // Nothing is read or written meanwhile: only the timer limits this.
    answer_on_worker(*match_.route, std::move(request_), connections_, std::move(done));
  }

  void respond(Response response) {
    if (closed_) return;
    if (!upload_) return send(std::move(response));
    // A client that tries again at once must not meet what its refused upload still holds.
    const auto refusal = std::make_shared<Response>(std::move(response));
    auto done = before_deadline(limits_.answer_time, "",
                                [refusal](Session& self, const auto&) { self.send(std::move(*refusal)); });
    auto hold = [upload = std::move(upload_)] { return std::optional<Response>(); };
    work_on_worker(Where::uploads, connections_, std::move(hold), std::move(done));
  }

  void send(Response response) {
    ++connections_.counters.answers.at(static_cast<std::size_t>(response.status));
    const bool streams = response.events != nullptr;
    if (streams) keep_alive_ = false;
    const auto length = streams ? std::nullopt : std::optional(length_of(response));
    head_ = head_of(response, length, keep_alive_, std::time(nullptr));
    if (streams && !is_head_) {
      events_ = std::move(response.events);
      return stream_events();
    }
    outgoing_ = is_head_ ? Outgoing() : Outgoing(std::move(response));
    write_piece(head_);
  }

  void write_piece(std::string_view piece) {
    lowest().expires_after(limits_.write_time);
    net::async_write(stream_, net::buffer(piece.data(), piece.size()),
                     [self = this->shared_from_this()](const error_code& error, std::size_t) {
                       if (!error) self->written();
                     });
  }

  void written() {
    const auto piece = outgoing_.next();
    if (!piece) return close();  // the file cannot be read any more: the client sees that bytes are missing
    if (!piece->empty()) return write_piece(*piece);
    head_.clear();
    outgoing_ = Outgoing();
    keep_alive_ ? read_header() : part();
  }

  // --- events

  void stream_events() {
    ++connections_.counters.streams;
    lowest().expires_never();
    // A client that sends anything, or closes, ends the stream.
    stream_.async_read_some(net::buffer(&unread_, 1),
                            [self = this->shared_from_this()](const error_code&, std::size_t) { self->close(); });
    // On a producer's thread. The queue is let go of before `connections_` ends.
    events_->on_ready([weak = this->weak_from_this(), &shared = connections_] {
      if (shared.woken.add(weak)) net::post(shared.io, [&shared] { shared.woken.wake_all(); });
    });
    write_events(head_ + ": stream\n\n");
    comment_when_silent();
  }

  void wake() override {
    if (closed_ || !events_ || writing_) return;
    for (auto text = events_->take(kMostEventBytes); !text.empty(); text = events_->take(kMostEventBytes)) {
      silent_looks_ = 0;
      std::size_t sent = 0;
      if constexpr (std::is_same_v<Stream, Plain>) sent = send_now(lowest().socket().native_handle(), text);
      if (sent < text.size()) return write_events(text.substr(sent));
    }
    if (events_->ended()) close();
  }

  /// A look now and then costs less than a timer that each write sets anew.
  void comment_when_silent() {
    timer_.expires_after(limits_.comment_every / 2);
    timer_.async_wait([weak = this->weak_from_this()](const error_code& error) {
      const auto self = weak.lock();
      if (!self || error || self->closed_) return;
      if (++self->silent_looks_ > 1 && !self->writing_) self->write_events(": \n\n");
      self->comment_when_silent();
    });
  }

  void write_events(std::string text) {
    writing_ = true;
    silent_looks_ = 0;
    head_ = std::move(text);
    lowest().expires_after(limits_.write_time);  // of the write: the read has begun without one
    net::async_write(stream_, net::buffer(head_),
                     [self = this->shared_from_this()](const error_code& error, std::size_t) {
                       self->writing_ = false;
                       if (error) return self->close();
                       self->wake();
                     });
  }

  void let_go_of_events() {
    if (!events_) return;
    events_->abandon();
    events_.reset();
    --connections_.counters.streams;
  }

  // --- the end

  void part() {
    if (closed_) return;
    let_go(upload_, connections_);
    lowest().expires_after(kParting);
    if constexpr (std::is_same_v<Stream, Secure>)
      stream_.async_shutdown([self = this->shared_from_this()](const error_code&) { self->shut(); });
    else
      shut();
  }

  /// Bytes that come after a close would make the client's system discard the answer: they are read first.
  void shut() {
    error_code error;
    lowest().socket().shutdown(tcp::socket::shutdown_send, error);
    if (error) return close();
    drain();
  }

  void drain() {
    lowest().async_read_some(net::buffer(discarded_),
                             [self = this->shared_from_this()](const error_code& error, std::size_t) {
                               if (error) return self->close();
                               self->drain();
                             });
  }

  Stream stream_;
  const std::string peer_;
  Connections& connections_;
  const Limits& limits_;
  const Welcome welcome_;
  net::steady_timer timer_;
  beast::flat_buffer buffer_{kBuffer};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::request_parser<http::buffer_body>> pieces_;
  Request request_;
  std::shared_ptr<Upload> upload_;
  RouteMatch match_;
  std::string head_;  // what is being written, with the events after it
  Outgoing outgoing_;
  std::shared_ptr<EventQueue> events_;
  std::array<char, 4096> discarded_{};
  std::uint64_t call_ = 0;  // counts answers, so that a late one is not sent
  char unread_ = 0;
  bool first_ = true, keep_alive_ = false, is_head_ = false, writing_ = false, closed_ = false;
  int silent_looks_ = 0;  // since the last event or comment
};

}  // namespace

void start_session(tcp::socket socket, const std::string& peer, Connections& connections, Welcome welcome) {
  if (const auto& tls = connections.setup.tls) {
    SSL_CTX_up_ref(tls.get());
    net::ssl::context context(tls.get());  // it takes a reference of its own
    std::make_shared<Session<Secure>>(std::move(socket), peer, connections, welcome, context)->start();
  } else {
    std::make_shared<Session<Plain>>(std::move(socket), peer, connections, welcome)->start();
  }
}

}  // namespace troupe::service
