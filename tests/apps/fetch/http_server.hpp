/// A web server on loopback for tests, which does what they want: also what no server should. Each connection has one request. Its thread
/// ends with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::fetch::testing {

struct Request {
  std::string method, target;
  std::string host, range;  // fields; empty: none
};

struct Reply {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> fields{};
  std::string body{};
  bool says_length = true;                                          // Content-Length
  std::size_t cut_after = std::numeric_limits<std::size_t>::max();  // bytes of the body: then the connection ends,
  bool stalls = false;                                              // or stays open, silent
  bool silent = false;                                              // says nothing at all
  std::string raw{};                                                // instead of all the above, if not empty
};

/// `contents` or the asked-for part of it, as a good server replies.
[[nodiscard]] Reply file_reply(const Request& request, const std::string& contents);

struct ServerFiles {
  std::string certificate, key;  // paths
};

class HttpServer {
 public:
  /// `handler` runs on the server's thread. With `tls` it speaks TLS. `listen`: an address of loopback.
  explicit HttpServer(std::function<Reply(const Request&)> handler, const std::optional<ServerFiles>& tls = {},
                      const std::string& listen = "127.0.0.1");
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// "http://127.0.0.1:4242".
  [[nodiscard]] std::string address() const;
  /// All requests so far.
  [[nodiscard]] std::vector<Request> requests() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A port of loopback where nothing listens.
[[nodiscard]] std::uint16_t closed_port();

}  // namespace troupe::fetch::testing
