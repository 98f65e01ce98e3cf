#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <ctime>

#include <gtest/gtest.h>

#include "service/http/browser_tls.hpp"
#include "tests/service/served.hpp"
#include "transport/security/authority.hpp"
#include "transport/security/openssl.hpp"

namespace troupe::service {
namespace {

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    EXPECT_TRUE(security::create_authority(certificates_.path(), std::time(nullptr), false));
    files_ = security::create_node(certificates_.path(), "n1", {}, std::time(nullptr), false).value();
    served_ = std::make_unique<Served>(Limits{}, Served::one_run, make_browser_tls(files_, std::time(nullptr)).value());
  }

  /// The answer over TLS to a client that trusts the authority and shows no certificate; empty: no connection.
  [[nodiscard]] std::string ask(const std::string& request, int newest_version = 0) const {
    const std::unique_ptr<SSL_CTX, security::Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_load_verify_file(context.get(), files_.ca.c_str());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (newest_version != 0) SSL_CTX_set_max_proto_version(context.get(), newest_version);
    const core::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(served_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::unique_ptr<SSL, security::Freed<SSL_free>> tls(SSL_new(context.get()));
    SSL_set_fd(tls.get(), socket.get());
    SSL_set1_host(tls.get(), "localhost");
    if (SSL_connect(tls.get()) != 1) return {};
    SSL_write(tls.get(), request.data(), static_cast<int>(request.size()));
    std::string reply(1 << 16, '\0');
    const int count = SSL_read(tls.get(), reply.data(), static_cast<int>(reply.size()));
    reply.resize(static_cast<std::size_t>(std::max(count, 0)));
    return reply;
  }

  const tests::Folder certificates_;
  security::TlsFiles files_;
  std::unique_ptr<Served> served_;
};

TEST_F(TlsTest, BrowserWithoutACertificateIsServed) {
  EXPECT_TRUE(ask(request_text("GET", "/healthz")).starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(ask(request_text("GET", "/api/v1/runs")).starts_with("HTTP/1.1 401 "));
}

TEST_F(TlsTest, CookieOverTlsIsForTlsOnly) {
  const auto body = R"({"token": ")" + served_->token(Role::read) + "\"}";
  const auto reply = ask(request_text("POST", "/api/v1/session", {}, body));
  EXPECT_NE(reply.find("; Secure\r\n"), std::string::npos) << reply;
}

TEST_F(TlsTest, OldVersionsAndPlainTextAreRefused) {
  EXPECT_EQ(ask(request_text("GET", "/healthz"), TLS1_1_VERSION), "");
  Client plain(served_->port());
  plain.send(request_text("GET", "/healthz"));
  EXPECT_EQ(plain.receive().status, 0);
  EXPECT_TRUE(ask(request_text("GET", "/healthz")).starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(TlsTest, FilesThatDoNotFitAreAnError) {
  auto files = files_;
  files.key = certificates_.file("ca.key");
  const auto context = make_browser_tls(files, std::time(nullptr));
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::service
