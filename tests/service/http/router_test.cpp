#include "service/http/router.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace troupe::service {
namespace {

Router some_routes() {
  Router router;
  const auto add = [&](Method method, const char* pattern) {
    router.add({.method = method, .pattern = pattern, .handler = [](const Request&) { return answer_nothing(); }});
  };
  add(Method::get, "/");
  add(Method::get, "/runs");
  add(Method::get, "/runs/{run}");
  add(Method::del, "/runs/{run}");
  add(Method::get, "/runs/newest");
  add(Method::get, "/runs/{run}/samples/{n}");
  return router;
}

TEST(RouterTest, NamedSegmentsAreDecodedAfterTheDivision) {
  const auto router = some_routes();
  const auto found = router.match(Method::get, "/runs/alpha-tau%2F2026%20x");
  ASSERT_NE(found.route, nullptr);
  EXPECT_EQ(found.route->pattern, "/runs/{run}");
  EXPECT_EQ(found.parameters.at("run"), "alpha-tau/2026 x");
  EXPECT_EQ(router.match(Method::get, "/runs/alpha-tau/2026").route, nullptr);
}

TEST(RouterTest, SpeltOutPathGoesBeforeAPattern) {
  const auto router = some_routes();
  EXPECT_EQ(router.match(Method::get, "/runs/newest").route->pattern, "/runs/newest");
}

TEST(RouterTest, HeadIsAnsweredByGet) {
  const auto router = some_routes();
  EXPECT_EQ(router.match(Method::head, "/runs").route->pattern, "/runs");
}

TEST(RouterTest, OtherMethodsOfAPathAreAllowedOnes) {
  const auto router = some_routes();
  const auto found = router.match(Method::post, "/runs/a");
  EXPECT_EQ(found.route, nullptr);
  EXPECT_THAT(found.allowed, testing::UnorderedElementsAre(Method::get, Method::del));
  EXPECT_TRUE(router.match(Method::post, "/elsewhere").allowed.empty());
}

TEST(RouterTest, EmptySegmentIsNoName) {
  const auto router = some_routes();
  EXPECT_EQ(router.match(Method::get, "/runs/").route, nullptr);
  EXPECT_EQ(router.match(Method::get, "//runs").route, nullptr);
}

TEST(RouterTest, ASecondHandlerOfOnePathIsABug) {
  auto router = some_routes();
  EXPECT_THROW(router.add({.method = Method::get, .pattern = "/runs", .handler = nullptr}), std::logic_error);
}

TEST(RouterTest, WaysOutOfAFolderAreMalformed) {
  const auto router = some_routes();
  for (const auto* path :
       {"/runs/..", "/runs/.", "/runs/..%2fetc", "/runs/a%2f..%2fb", "/runs/%2e%2e%2fa", "/runs/%2fetc", "/runs/a%00",
        "/runs/a%0d%0ab", "/runs/a%5cb", "/runs/%", "/runs/%2", "/runs/%zz", "/runs/%ff", "/runs/%c0%af", "runs", ""})
    EXPECT_TRUE(router.match(Method::get, path).malformed) << path;
}

/// Bytes as they may come, with the ones that mean something more often.
rc::Gen<std::string> any_path() {
  return rc::gen::map(rc::gen::container<std::string>(rc::gen::oneOf(
                          rc::gen::element('/', '%', '.', '2', 'f', 'e', '{', '}', 'r', 'u', 'n', 's', '\\'),
                          rc::gen::arbitrary<char>())),
                      [](const std::string& text) { return "/" + text; });
}

RC_GTEST_PROP(RouterProperty, NoDecodedSegmentLeavesItsFolder, ()) {
  const auto path = *any_path();
  const auto segments = path_segments(path);
  if (!segments) return;
  for (const auto& segment : *segments) {
    const auto padded = "/" + segment + "/";
    RC_ASSERT(padded.find("/../") == std::string::npos);
    RC_ASSERT(padded.find("/./") == std::string::npos);
    RC_ASSERT(segment.find('\0') == std::string::npos);
    RC_ASSERT(!segment.starts_with("/"));
  }
}

RC_GTEST_PROP(RouterProperty, AnyPathHasARouteOrNone, ()) {
  const auto router = some_routes();
  const auto path = *any_path();
  const auto found = router.match(Method::get, path);
  if (found.malformed) RC_ASSERT(found.route == nullptr);
  if (found.route == nullptr) return;
  const auto wanted = std::ranges::count(found.route->pattern, '{');
  RC_ASSERT(static_cast<std::ptrdiff_t>(found.parameters.size()) == wanted);
}

RC_GTEST_PROP(RouterProperty, EncodedNamesComeBack, ()) {
  const auto name = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~')));
  RC_ASSERT(percent_decoded(percent_encoded(name)) == name);
}

TEST(RequestTest, QueryValuesAreDecodedInOrder) {
  Request request;
  request.query = "run=a%2Fb&x=1+2&run=c&empty&bad=%zz";
  EXPECT_THAT(request.query_values("run"), testing::ElementsAre("a/b", "c"));
  EXPECT_EQ(request.query_value("x"), "1 2");
  EXPECT_EQ(request.query_value("empty"), "");
  EXPECT_EQ(request.query_value("bad"), std::nullopt);
}

TEST(RequestTest, NumbersOutOfBoundsAreRefused) {
  Request request;
  request.query = "a=5&b=5x&c=-1&d=99999999999999999999";
  EXPECT_EQ(request.number("a", 1, 0, 9).value(), 5);
  EXPECT_EQ(request.number("none", 7, 0, 9).value(), 7);
  for (const auto* name : {"b", "c", "d"}) EXPECT_FALSE(request.number(name, 1, 0, 9)) << name;
}

}  // namespace
}  // namespace troupe::service
