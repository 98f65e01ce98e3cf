#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/service/served.hpp"
#include "tests/wait.hpp"

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
  Limits patient;  // the file is looked at once a second: until then the test asks more often than one address may
  patient.requests_per_s = patient.burst = 1e6;
  const Served served(patient);
  EXPECT_EQ(served.get("/api/v1/server").status, 200);
  auto users = Users::open(served.folder().file(".service/users.json")).value();
  ASSERT_TRUE(users.remove("read-user"));
  EXPECT_TRUE(tests::eventually([&] { return served.get("/api/v1/server").status == 401; }));
  EXPECT_EQ(served.ask("GET", "/api/v1/server", Role::run).status, 200) << "the others stay";
}

}  // namespace
}  // namespace troupe::service
