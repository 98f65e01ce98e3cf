// Files from servers with certificates.
#include <cstdlib>
#include <ctime>

#include "tests/apps/fetch/downloads.hpp"
#include "tests/apps/fetch/http_server.hpp"
#include "transport/security/authority.hpp"

namespace troupe::fetch {
namespace {

using core::Errc;
using testing::file_reply;
using testing::HttpServer;
using testing::Reply;
using testing::Request;

/// Servers with a certificate of an authority of their own, which the environment names, or does not.
class TlsDownloads : public Downloads {
 protected:
  TlsDownloads() {
    const auto directory = certificates_.path();
    EXPECT_TRUE(security::create_authority(directory, std::time(nullptr), false));
    const auto made = security::create_node(directory, "server", {"127.0.0.1"}, std::time(nullptr), false);
    EXPECT_TRUE(made);
    files_ = {made->certificate, made->key};
    authority_ = made->ca;
  }
  ~TlsDownloads() override { ::unsetenv("SSL_CERT_FILE"); }
  void trust() const { ::setenv("SSL_CERT_FILE", authority_.c_str(), 1); }

  tests::Folder certificates_;
  testing::ServerFiles files_;
  std::string authority_;
};

TEST_F(TlsDownloads, FileArrivesFromATrustedServer) {
  trust();
  const HttpServer server(
      [&](const Request& request) {
        auto reply = file_reply(request, contents_);
        if (request.range.empty()) reply.cut_after = 300'000;
        return reply;
      },
      files_);
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
}

TEST_F(TlsDownloads, UnknownAuthorityIsRefused) {
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); }, files_);
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::config);
  EXPECT_NE(error.message.find("certificate"), std::string::npos) << error.message;
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(TlsDownloads, CertificateOfAnotherHostIsRefused) {
  trust();
  const auto other = security::create_node(certificates_.path(), "other", {"192.0.2.1"}, std::time(nullptr), false);
  ASSERT_TRUE(other);
  // A certificate of ours also names 127.0.0.1, but no other address of loopback.
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); },
                          testing::ServerFiles{other->certificate, other->key}, "127.0.0.2");
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::config);
  EXPECT_NE(error.message.find("certificate"), std::string::npos) << error.message;
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(TlsDownloads, PlainServerIsRefused) {
  trust();
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); });
  auto address = server.address();
  address.replace(0, 4, "https");
  options_.http.connect = std::chrono::milliseconds(2000);
  options_.attempts = 1;
  EXPECT_FALSE(get({address}));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(TlsDownloads, RedirectFromTlsToPlainIsNotFollowed) {
  trust();
  const HttpServer plain([&](const Request& request) { return file_reply(request, contents_); });
  const HttpServer server(
      [&](const Request&) {
        return Reply{.status = 302, .fields = {{"Location", plain.address() + "/f"}}};
      },
      files_);
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::data);
  EXPECT_NE(error.message.find("from https to http"), std::string::npos) << error.message;
  EXPECT_TRUE(plain.requests().empty());
}

}  // namespace
}  // namespace troupe::fetch
