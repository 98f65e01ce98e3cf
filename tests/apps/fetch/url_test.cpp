#include "apps/fetch/url.hpp"

#include <map>

#include <gtest/gtest.h>

namespace troupe::fetch {
namespace {

Url url(std::string_view text) {
  const auto parsed = parse_url(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message);
  return parsed.value_or(Url{});
}

TEST(Urls, HaveHostPortAndTarget) {
  EXPECT_EQ(url("https://Host.org/a/b?c=d#e"), (Url{true, "host.org", 443, "/a/b?c=d"}));
  EXPECT_EQ(url("HTTP://host:8080"), (Url{false, "host", 8080, "/"}));
  EXPECT_EQ(url("http://[::1]:80/x"), (Url{false, "::1", 80, "/x"}));
  EXPECT_EQ(url("http://h?q"), (Url{false, "h", 80, "/?q"}));
}

TEST(Urls, TextIsReadBackAsTheSame) {
  for (const auto* text : {"https://host.org/a/b?c=d", "http://host:8080/", "http://[::1]:81/x", "https://h:80/"}) {
    EXPECT_EQ(to_text(url(text)), text);
    EXPECT_EQ(url(to_text(url(text))), url(text));
  }
  EXPECT_EQ(authority(url("https://host:443/x")), "host");
  EXPECT_EQ(authority(url("http://[::1]:443/x")), "[::1]:443");
}

TEST(Urls, OtherTextIsRefused) {
  for (const auto* text : {"", "host/file", "ftp://host/file", "http://", "http:///x", "http://host:0/",
                           "http://host:70000/", "http://host:x/", "http://user@host/", "http://host/a b",
                           "http://host/\r\nX: y", "http://ho<st/", "http://host/\xc3\xa4"})
    EXPECT_FALSE(parse_url(text)) << text;
  EXPECT_FALSE(parse_url("http://host/" + std::string(10'000, 'x')));
}

TEST(Urls, FilesAreInFoldersWithOrWithoutASlash) {
  EXPECT_EQ(to_text(file_in(url("http://h/data"), "f.gz")), "http://h/data/f.gz");
  EXPECT_EQ(to_text(file_in(url("http://h/data/"), "f.gz")), "http://h/data/f.gz");
  EXPECT_EQ(to_text(file_in(url("http://h"), "f.gz")), "http://h/f.gz");
  EXPECT_EQ(to_text(file_in(url("http://h/data?key=1"), "f.gz")), "http://h/data/f.gz?key=1");
}

TEST(Urls, RedirectsAreRelativeToTheirPage) {
  const auto base = url("https://h:8443/a/b/c?q");
  const std::map<std::string, std::string> expected{
      {"https://other/x", "https://other/x"}, {"//other/x", "https://other/x"}, {"/x?y", "https://h:8443/x?y"},
      {"x", "https://h:8443/a/b/x"},          {"../x", "https://h:8443/a/x"},   {"?z", "https://h:8443/a/b/c?z"},
      {"", "https://h:8443/a/b/c?q"}};
  for (const auto& [location, target] : expected) {
    const auto found = redirected(base, location);
    ASSERT_TRUE(found) << location << ": " << found.error().message;
    EXPECT_EQ(to_text(*found), target) << location;
  }
  for (const auto* location : {"ftp://h/x", "mailto:a", "http://h:99999/", "/a b"}) {
    const auto found = redirected(base, location);
    ASSERT_FALSE(found) << location;
    EXPECT_EQ(found.error().code, core::Errc::data);
  }
}

Variable environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

TEST(Proxies, AreThoseOfTheEnvironment) {
  const auto proxy = [](std::string_view address, std::map<std::string, std::string> values) -> std::string {
    const auto found = proxy_for(url(address), environment(std::move(values)));
    if (!found) return "error";
    return *found ? to_text(**found) : "none";
  };
  EXPECT_EQ(proxy("https://h/", {}), "none");
  EXPECT_EQ(proxy("https://h/", {{"https_proxy", "http://p:3128"}}), "http://p:3128/");
  EXPECT_EQ(proxy("https://h/", {{"HTTPS_PROXY", "p:3128"}}), "http://p:3128/");
  EXPECT_EQ(proxy("http://h/", {{"https_proxy", "http://p:3128"}}), "none");
  EXPECT_EQ(proxy("http://h/", {{"http_proxy", "http://p:3128"}}), "http://p:3128/");
  EXPECT_EQ(proxy("http://h/", {{"HTTP_PROXY", "http://p:3128"}}), "none");
  EXPECT_EQ(proxy("http://h/", {{"all_proxy", "http://p"}}), "http://p/");
  EXPECT_EQ(proxy("http://h/", {{"http_proxy", "https://p"}}), "error");
  EXPECT_EQ(proxy("http://h/", {{"http_proxy", "http://me:word@p"}}), "error");
}

TEST(Proxies, AreNotUsedForListedHosts) {
  const auto direct = [](std::string_view address, std::string list) {
    return !proxy_for(url(address), environment({{"all_proxy", "http://p"}, {"no_proxy", std::move(list)}})).value();
  };
  EXPECT_TRUE(direct("http://a.b.org/", "b.org"));
  EXPECT_TRUE(direct("http://a.b.org/", "x, .B.org"));
  EXPECT_TRUE(direct("http://b.org/", ".b.org"));
  EXPECT_TRUE(direct("http://127.0.0.1:81/", "127.0.0.1"));
  EXPECT_TRUE(direct("http://h/", "*"));
  EXPECT_FALSE(direct("http://ab.org/", "b.org"));
  EXPECT_FALSE(direct("http://h/", ""));
}

}  // namespace
}  // namespace troupe::fetch
