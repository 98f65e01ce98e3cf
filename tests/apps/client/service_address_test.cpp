#include "apps/client/service_address.hpp"

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::apps {
namespace {

/// `token` and `ca`: the variables; null: they are not set.
core::Result<ServiceAddress> address(std::string_view text, const ServiceAccess& access = {},
                                     const char* token = nullptr, const char* ca = nullptr) {
  return service_address(text, access, [&](const char* name) -> const char* {
    if (std::string_view(name) == "TROUPE_TOKEN") return token;
    return std::string_view(name) == "TROUPE_CA" ? ca : nullptr;
  });
}

TEST(ServiceAddressTest, AddressesOfServices) {
  EXPECT_TRUE(is_service_address("https://a:8443"));
  EXPECT_FALSE(is_service_address("runs/https"));
  const auto plain = address("http://127.0.0.1:8080/");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(plain->url.port, 8080);
  EXPECT_EQ(plain->url.target, "");
  EXPECT_EQ(address("https://train.example.org/troupe/")->url.target, "/troupe");
  EXPECT_TRUE(address("http://localhost:1").has_value());
  EXPECT_TRUE(address("http://[::1]:8080").has_value());
}

TEST(ServiceAddressTest, TokensAreKeptFromOthers) {
  const auto shown = address("http://10.0.0.1:8080");
  ASSERT_FALSE(shown.has_value());
  EXPECT_NE(shown.error().message.find("https://"), std::string::npos);
  const auto pasted = address("http://127.0.0.1:8080/#token=secret");
  ASSERT_FALSE(pasted.has_value());
  EXPECT_EQ(pasted.error().message.find("secret"), std::string::npos);
  EXPECT_NE(pasted.error().message.find("--token-file"), std::string::npos);
}

TEST(ServiceAddressTest, ATokenComesFromItsFileOrTheEnvironment) {
  const tests::Folder folder;
  const auto file = folder.write("token", "  abc_1-2\nmore\n");
  EXPECT_EQ(address("https://h", {.token_file = file, .ca = {}}, "x")->token, "abc_1-2");
  EXPECT_EQ(address("https://h", {}, "x\n", "ca.pem")->token, "x");
  EXPECT_EQ(address("https://h", {}, nullptr, "ca.pem")->ca, "ca.pem");
  EXPECT_EQ(address("https://h", {.token_file = {}, .ca = "mine.pem"}, nullptr, "ca.pem")->ca, "mine.pem");
  EXPECT_EQ(address("https://h", {.token_file = folder.write("empty", "\n"), .ca = {}}).error().code,
            core::Errc::config);
  EXPECT_EQ(address("https://h", {.token_file = folder.file("none"), .ca = {}}).error().code, core::Errc::config);
  EXPECT_EQ(address("https://h", {}, "a b").error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::apps
