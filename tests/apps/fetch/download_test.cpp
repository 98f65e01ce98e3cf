// One file from a local server, which does what servers and lines do now and then.
#include "apps/fetch/download.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "apps/fetch/part_file.hpp"
#include "tests/apps/fetch/downloads.hpp"
#include "tests/apps/fetch/http_server.hpp"
#include "tests/wait.hpp"

namespace troupe::fetch {
namespace {

using core::Errc;
using testing::file_reply;
using testing::HttpServer;
using testing::read_file;
using testing::Reply;
using testing::Request;

TEST_F(Downloads, FileArrivesWhole) {
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
  EXPECT_EQ(seen_.back(), kBytes);
  EXPECT_TRUE(std::ranges::is_sorted(seen_));
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].target, "/f");
  EXPECT_EQ(server.requests()[0].range, "");
  EXPECT_EQ(server.requests()[0].host, server.address().substr(7));
}

TEST_F(Downloads, CutConnectionsAreContinuedWhereTheyEnded) {
  const HttpServer server([&](const Request& request) {
    auto reply = file_reply(request, contents_);
    reply.cut_after = 200'000;
    return reply;
  });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[1].range, "bytes=200000-");
  EXPECT_EQ(requests[3].range, "bytes=600000-");
}

TEST_F(Downloads, LaterCallGoesOn) {
  write_part(contents_.substr(0, 650'000));
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
  EXPECT_EQ(server.requests().at(0).range, "bytes=650000-");
  EXPECT_EQ(seen_.front(), 650'000U);
}

TEST_F(Downloads, WholePartNeedsNoServer) {
  write_part(contents_);
  const auto got = get({"http://127.0.0.1:" + std::to_string(testing::closed_port())});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
}

TEST_F(Downloads, ServerThatIgnoresRangesSendsAllOfItAgain) {
  std::atomic<int> calls = 0;
  const HttpServer server([&](const Request&) {
    return Reply{.body = contents_, .cut_after = ++calls == 1 ? std::size_t{300'000} : kBytes};
  });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
  EXPECT_EQ(server.requests().at(1).range, "bytes=300000-");
}

TEST_F(Downloads, AnotherRangeThanAskedForIsNotTaken) {
  write_part(contents_.substr(0, 1000));
  const HttpServer server([&](const Request& request) {
    if (request.range.empty()) return file_reply(request, contents_);
    return Reply{
        .status = 206, .fields = {{"Content-Range", "bytes 999-700000/700001"}}, .body = contents_.substr(999)};
  });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(Downloads, PartThatTheServerDoesNotKnowIsDropped) {
  write_part(contents_.substr(0, 1000));
  const HttpServer server([&](const Request& request) {
    return request.range.empty() ? file_reply(request, contents_) : Reply{.status = 416};
  });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
}

TEST_F(Downloads, PartWithOtherBytesIsFetchedAgain) {
  write_part(std::string(400'000, 'x'));
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(Downloads, WrongBytesAreRefused) {
  auto other = contents_;
  other[12'345] = static_cast<char>(other[12'345] ^ 1);
  const HttpServer server([&](const Request& request) { return file_reply(request, other); });
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::data);
  EXPECT_NE(error.message.find(file_.sha256), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(server.address()), std::string::npos) << error.message;
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(Downloads, WrongLengthsAreRefusedBeforeTheyAreSent) {
  for (const auto& other : {contents_ + "x", contents_.substr(1)}) {
    const HttpServer server([&](const Request&) { return Reply{.body = other}; });
    const auto error = failure({server.address()});
    EXPECT_EQ(error.code, Errc::data);
    EXPECT_NE(error.message.find(std::to_string(other.size()) + " bytes, expected 700001"), std::string::npos)
        << error.message;
  }
}

TEST_F(Downloads, EndlessFileIsRefused) {
  const HttpServer server([&](const Request&) { return Reply{.body = contents_ + contents_, .says_length = false}; });
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::data);
  EXPECT_NE(error.message.find("more than 700001 bytes"), std::string::npos) << error.message;
  EXPECT_EQ(std::filesystem::file_size(part()), 0U);
}

TEST_F(Downloads, FileWithoutALengthArrives) {
  const HttpServer server([&](const Request&) { return Reply{.body = contents_, .says_length = false}; });
  ASSERT_TRUE(get({server.address()}));
  expect_complete();
}

TEST_F(Downloads, ChunkedFileArrives) {
  std::string chunks;
  for (std::size_t at = 0; at < kBytes; at += 100'000) {
    const auto chunk = contents_.substr(at, 100'000);
    std::array<char, 16> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", chunk.size());
    chunks += size.data() + chunk + "\r\n";
  }
  const HttpServer server([&](const Request&) {
    return Reply{.fields = {{"Transfer-Encoding", "chunked"}}, .body = chunks + "0\r\n\r\n", .says_length = false};
  });
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
}

TEST_F(Downloads, MissingFileIsSoughtAtTheNextAddress) {
  const HttpServer empty([](const Request&) { return Reply{.status = 404}; });
  const HttpServer full([&](const Request& request) { return file_reply(request, contents_); });
  ASSERT_TRUE(get({empty.address(), full.address()}));
  expect_complete();
  EXPECT_EQ(empty.requests().size(), 1U);
}

TEST_F(Downloads, FileThatIsNowhereIsNamedWithItsAddress) {
  const HttpServer empty([](const Request&) { return Reply{.status = 404}; });
  const auto error = failure({empty.address()});
  EXPECT_EQ(error.code, Errc::data);
  EXPECT_EQ(error.message, empty.address() + "/f: the server answers 404 Text");
}

TEST_F(Downloads, BusyServerIsAskedAgain) {
  std::atomic<int> calls = 0;
  const HttpServer server(
      [&](const Request& request) { return ++calls < 4 ? Reply{.status = 503} : file_reply(request, contents_); });
  ASSERT_TRUE(get({server.address()}));
  expect_complete();
}

TEST_F(Downloads, ServerThatStaysBusyIsGivenUp) {
  const HttpServer server([](const Request&) { return Reply{.status = 503}; });
  EXPECT_EQ(failure({server.address()}).code, Errc::peer_lost);
  EXPECT_EQ(server.requests().size(), 5U);
}

TEST_F(Downloads, ServerThatDropsEachConnectionIsGivenUp) {
  const HttpServer server([&](const Request& request) {
    auto reply = file_reply(request, contents_);
    reply.cut_after = 10;
    return reply;
  });
  EXPECT_EQ(failure({server.address()}).code, Errc::peer_lost);
  EXPECT_EQ(server.requests().size(), 5U);
  EXPECT_EQ(std::filesystem::file_size(part()), 50U);  // kept for the next call
}

TEST_F(Downloads, SilentServerIsGivenUp) {
  options_.http.connect = options_.http.silence = std::chrono::milliseconds(50);
  options_.attempts = 2;
  const HttpServer server([](const Request&) { return Reply{.silent = true}; });
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::timeout);
  EXPECT_NE(error.message.find("no answer in time"), std::string::npos) << error.message;
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(Downloads, ClosedPortIsNamed) {
  const auto error = failure({"http://127.0.0.1:" + std::to_string(testing::closed_port())});
  EXPECT_EQ(error.code, Errc::peer_lost);
  EXPECT_NE(error.message.find("no server listens there"), std::string::npos) << error.message;
}

TEST_F(Downloads, RedirectsAreFollowed) {
  const HttpServer full([&](const Request& request) { return file_reply(request, contents_); });
  const HttpServer server([&](const Request& request) {
    const auto next = request.target == "/f" ? std::string("/second") : full.address() + "/third?x=1";
    return Reply{.status = request.target == "/f" ? 301U : 307U, .fields = {{"Location", next}}};
  });
  write_part(contents_.substr(0, 1000));
  const auto got = get({server.address()});
  ASSERT_TRUE(got) << got.error().message;
  expect_complete();
  EXPECT_EQ(full.requests().at(0).target, "/third?x=1");
  EXPECT_EQ(full.requests().at(0).range, "bytes=1000-");
}

TEST_F(Downloads, RedirectsInACircleEnd) {
  const HttpServer server([](const Request&) { return Reply{.status = 302, .fields = {{"Location", "/f"}}}; });
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::data);
  EXPECT_NE(error.message.find("more than 5 redirects"), std::string::npos) << error.message;
  EXPECT_EQ(server.requests().size(), 6U);
}

TEST_F(Downloads, RedirectsToNowhereAreErrors) {
  for (const auto* location : {"ftp://h/x", "", "http://"}) {
    const HttpServer server([&](const Request&) { return Reply{.status = 302, .fields = {{"Location", location}}}; });
    EXPECT_EQ(failure({server.address()}).code, Errc::data) << location;
  }
}

TEST_F(Downloads, AnswersThatAreNoHttpAreErrors) {
  for (const std::string raw :
       {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 banana\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n"}) {
    const HttpServer server([&](const Request&) { return Reply{.raw = raw}; });
    EXPECT_EQ(failure({server.address()}).code, Errc::data) << raw;
  }
  options_.attempts = 1;
  const HttpServer endless(
      [](const Request&) { return Reply{.raw = "HTTP/1.1 200 OK\r\nX: " + std::string(std::size_t{1} << 20, 'x')}; });
  EXPECT_EQ(failure({endless.address()}).code, Errc::data);
}

TEST_F(Downloads, StopRequestKeepsWhatArrived) {
  std::stop_source source;
  const HttpServer server([&](const Request& request) {
    if (!request.range.empty()) {
      source.request_stop();
      return Reply{.silent = true};
    }
    auto reply = file_reply(request, contents_);
    reply.cut_after = 300'000;
    return reply;
  });
  const auto got = get({server.address()}, source.get_token());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::interrupted);
  EXPECT_TRUE(read_file(part()) == contents_.substr(0, 300'000));
}

TEST_F(Downloads, StopRequestEndsAPause) {
  options_.pause = std::chrono::hours(1);
  std::stop_source source;
  const HttpServer server([&](const Request&) { return Reply{.status = 503}; });
  std::jthread stopper([&] {
    EXPECT_TRUE(tests::eventually([&] { return !server.requests().empty(); }));
    source.request_stop();
  });
  const auto got = get({server.address()}, source.get_token());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::interrupted);
}

TEST_F(Downloads, FullDiskIsAnErrorAtOnce) {
  std::filesystem::create_symlink("/dev/full", part());
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); });
  EXPECT_EQ(failure({server.address(), server.address()}).code, Errc::no_space);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(Downloads, TwoProcessesDoNotMixTheirBytes) {
  const auto other = PartFile::open(path());
  ASSERT_TRUE(other);
  const HttpServer server([&](const Request& request) { return file_reply(request, contents_); });
  const auto error = failure({server.address()});
  EXPECT_EQ(error.code, Errc::config);
  EXPECT_NE(error.message.find("another process"), std::string::npos) << error.message;
}

TEST_F(Downloads, ProxyIsAskedForTheWholeAddress) {
  const HttpServer proxy([&](const Request& request) { return file_reply(request, contents_); });
  const auto address = proxy.address();
  options_.http.variable = [&](const char* name) {
    return std::string_view(name) == "http_proxy" ? address.c_str() : nullptr;
  };
  ASSERT_TRUE(get({"http://data.invalid"}));
  expect_complete();
  EXPECT_EQ(proxy.requests().at(0).target, "http://data.invalid/f");
}

TEST_F(Downloads, ProxyThatRefusesATunnelIsNamed) {
  const HttpServer proxy([](const Request&) { return Reply{.status = 403}; });
  const auto address = proxy.address();
  options_.http.variable = [&](const char* name) {
    return std::string_view(name) == "https_proxy" ? address.c_str() : nullptr;
  };
  const auto error = failure({"https://data.invalid"});
  EXPECT_EQ(error.code, Errc::config);
  EXPECT_NE(error.message.find(address.substr(7)), std::string::npos) << error.message;
  EXPECT_EQ(proxy.requests().at(0).method, "CONNECT");
  EXPECT_EQ(proxy.requests().at(0).target, "data.invalid:443");
}

TEST(ContentRanges, AreParsed) {
  const auto range = parse_content_range("bytes 100-199/200");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 100U);
  EXPECT_EQ(range->last, 199U);
  EXPECT_EQ(range->total, 200U);
  EXPECT_EQ(parse_content_range("bytes 0-9/*")->total, std::nullopt);
  for (const auto* text : {"", "bytes */200", "bytes 9-8/20", "bytes 0-9/9", "bytes 0-9", "bytes a-b/c", "items 0-9/10",
                           "bytes 0-99999999999999999999/*"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

}  // namespace
}  // namespace troupe::fetch
