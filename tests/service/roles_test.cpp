#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/service/served.hpp"

namespace troupe::service {
namespace {

/// A path of the pattern that names nothing that exists.
std::string path_of(std::string pattern) {
  for (auto begin = pattern.find('{'); begin != std::string::npos; begin = pattern.find('{'))
    pattern.replace(begin, pattern.find('}', begin) - begin + 1, "none");
  return pattern;
}

TEST(RolesTest, EveryRouteWantsItsRole) {
  const Served served;
  for (const auto& route : served.service().router().routes())
    for (const auto role : {Role::none, Role::read, Role::run, Role::admin}) {
      if (route.events && role >= route.role) continue;  // they have no end
      const auto path = path_of(route.pattern);
      const auto reply = served.ask(name(route.method), path, role);
      const bool refused = role < route.role;
      const int expected = role == Role::none ? 401 : 403;
      const auto what = fmt::format("{} {} as {}: {}", name(route.method), path, name(role), reply.status);
      if (refused) {
        EXPECT_EQ(reply.status, expected) << what;
      } else if (path != "/api/v1/session") {  // whose body has no token
        EXPECT_TRUE(reply.status != 401 && reply.status != 403) << what;
      }
    }
}

TEST(RolesTest, WrongTokensAreNoTokens) {
  const Served served;
  const auto& token = served.token(Role::admin);
  for (const std::string& header :
       std::vector<std::string>{"Authorization: Bearer " + token + "x", "Authorization: Bearer " + token.substr(1),
                                "Authorization: Basic " + token, "Authorization: Bearer ",
                                "Cookie: troupe_token=", "Cookie: other=" + token})
    EXPECT_EQ(served.ask("GET", "/api/v1/runs", Role::none, "", header + "\r\n").status, 401) << header;
}

TEST(RolesTest, TokenOfARemovedUserIsRefused) {
  const Served served;
  EXPECT_EQ(served.get("/api/v1/server").status, 200);
  auto users = Users::open(served.folder().file(".service/users.json")).value();
  ASSERT_TRUE(users.remove("read-user"));
  bool out = false;
  for (int i = 0; i < 100'000 && !out; ++i) {
    const auto status = served.get("/api/v1/server").status;
    out = status == 401 || status == 429;
    if (status == 429) break;  // the test asks faster than the limit allows: the look is once a second
  }
  EXPECT_TRUE(out);
}

}  // namespace
}  // namespace troupe::service
