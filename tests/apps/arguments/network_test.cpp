#include "apps/arguments/network.hpp"

#include <map>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::apps {
namespace {

core::Result<security::TlsFiles> found(const security::TlsFiles& flags,
                                       const std::map<std::string, std::string>& variables) {
  return find_tls(flags, [&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string text_of(const core::Result<security::TlsFiles>& files) {
  return files ? files->ca + " " + files->certificate + " " + files->key : files.error().message;
}

TEST(FindTls, FlagsComeBeforeVariablesAndThoseBeforeTheFolder) {
  const tests::Folder home;
  std::filesystem::create_directories(home.file(".config/troupe"));
  for (const char* file : {"ca.pem", "node.pem", "node.key"}) home.write(std::string(".config/troupe/") + file, "");
  const auto own = home.file(".config/troupe/");
  EXPECT_EQ(text_of(found({}, {{"HOME", home.path()}})), own + "ca.pem " + own + "node.pem " + own + "node.key");
  EXPECT_EQ(text_of(found({}, {{"HOME", home.path()}, {"TROUPE_CERT", "v"}})), own + "ca.pem v " + own + "node.key");
  EXPECT_EQ(text_of(found({"", "f", ""}, {{"HOME", home.path()}, {"TROUPE_CERT", "v"}, {"TROUPE_KEY", "k"}})),
            own + "ca.pem f k");
  EXPECT_EQ(text_of(found({}, {{"HOME", "/none"}, {"XDG_CONFIG_HOME", home.file(".config")}})),
            own + "ca.pem " + own + "node.pem " + own + "node.key");
  // A relative XDG_CONFIG_HOME is not valid.
  EXPECT_EQ(text_of(found({}, {{"HOME", home.path()}, {"XDG_CONFIG_HOME", "."}})),
            own + "ca.pem " + own + "node.pem " + own + "node.key");
}

/// The others may come from variables: an empty flag in the command that resumes a run would take the next flag for its file.
TEST(TlsFlags, AreThoseThatWereGiven) {
  EXPECT_EQ(tls_flags({}), "");
  EXPECT_EQ(tls_flags({.ca = "a", .certificate = "c", .key = "k"}), " --ca a --cert c --key k");
  EXPECT_EQ(tls_flags({.ca = "a", .certificate = "", .key = "k"}), " --ca a --key k");
}

TEST(FindTls, WithoutFilesThereIsNoTls) {
  EXPECT_TRUE(found({}, {}).value().empty());
  EXPECT_TRUE(found({}, {{"HOME", "/none"}, {"TROUPE_CA", ""}}).value().empty());
}

TEST(FindTls, IncompleteSetIsAnErrorThatSaysWhereTheRestBelongs) {
  const auto half = found({"a.pem", "", ""}, {{"HOME", "/none"}, {"TROUPE_CERT", "n.pem"}});
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, core::Errc::config);
  EXPECT_EQ(half.error().message,
            "TLS is set half-way: there is a.pem and n.pem, and no --key (TROUPE_KEY, /none/.config/troupe/node.key): "
            "give all three files, or none");
}

}  // namespace
}  // namespace troupe::apps
