#include "transport/security/authority.hpp"

#include <openssl/x509v3.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::security {
namespace {

constexpr std::time_t kNow = 1'800'000'000;  // 2027-01-15
constexpr std::time_t kDay = 24 * 3600;

TEST(Authority, NodeCertificateIsValidForItsHostsOnly) {
  const Identity authority = make_authority(authority_validity(kNow)).value();
  const Identity node =
      make_node(authority, "node1", {"10.0.0.11", "fd00::1", "node1.local"}, node_validity(kNow)).value();
  for (const char* host : {"node1", "10.0.0.11", "fd00::1", "node1.local", "localhost", "127.0.0.1", "::1"})
    EXPECT_TRUE(names_host(node.certificate.get(), host)) << host;
  for (const char* host : {"node2", "10.0.0.12", "local", "x.node1.local", ""})
    EXPECT_FALSE(names_host(node.certificate.get(), host)) << host;
}

TEST(Authority, SignsNodesButNoAuthorities) {
  const Identity authority = make_authority(authority_validity(kNow)).value();
  const Identity node = make_node(authority, "node1", {}, node_validity(kNow)).value();
  EXPECT_EQ(X509_check_ca(authority.certificate.get()), 1);
  EXPECT_EQ(X509_check_ca(node.certificate.get()), 0);
  EXPECT_EQ(X509_get_pathlen(authority.certificate.get()), 0);
  EXPECT_EQ(X509_verify(node.certificate.get(), authority.key.get()), 1);
  EXPECT_EQ(X509_check_purpose(node.certificate.get(), X509_PURPOSE_SSL_SERVER, 0), 1);
  EXPECT_EQ(X509_check_purpose(node.certificate.get(), X509_PURPOSE_SSL_CLIENT, 0), 1);
}

TEST(Authority, AuthorityIsValidTenYearsAndANodeTwo) {
  const auto ends = [](const X509* certificate, std::time_t at) {
    std::time_t before = at - kDay, after = at + kDay;
    return X509_cmp_time(X509_get0_notAfter(certificate), &before) > 0 &&
           X509_cmp_time(X509_get0_notAfter(certificate), &after) < 0;
  };
  const Identity authority = make_authority(authority_validity(kNow)).value();
  const Identity node = make_node(authority, "node1", {}, node_validity(kNow)).value();
  EXPECT_TRUE(ends(authority.certificate.get(), kNow + 3650 * kDay));
  EXPECT_TRUE(ends(node.certificate.get(), kNow + 730 * kDay));
}

TEST(Authority, InvalidNamesAndHostsAreRefused) {
  const Identity authority = make_authority(authority_validity(kNow)).value();
  for (const char* name : {"", "ca", "../x", "a/b", ".hidden", "-x", "a b", "ä", "a,DNS:b"})
    EXPECT_EQ(make_node(authority, name, {}, node_validity(kNow)).error().code, core::Errc::usage) << name;
  for (const char* host : {"", "10.0.0.1:80", "[::1]", "a,DNS:evil", "*"})
    EXPECT_EQ(make_node(authority, "n", {host}, node_validity(kNow)).error().code, core::Errc::usage) << host;
}

TEST(Authority, AHostMayBeLongerThanAName) {
  const Identity authority = make_authority(authority_validity(kNow)).value();
  std::string host = "a";
  while (host.size() < 253) host += host.size() % 60 == 0 ? "." : "a";
  const auto node = make_node(authority, std::string(64, 'n'), {host}, node_validity(kNow));
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_TRUE(names_host(node->certificate.get(), host));
  EXPECT_EQ(make_node(authority, "n", {host + "a"}, node_validity(kNow)).error().code, core::Errc::usage);
  EXPECT_EQ(make_node(authority, std::string(65, 'n'), {}, node_validity(kNow)).error().code, core::Errc::usage);
}

TEST(Authority, AKeyOfAnotherAuthorityMakesNothing) {
  const tests::Folder ours, others;
  ASSERT_TRUE(create_authority(ours.path(), kNow, false));
  ASSERT_TRUE(create_authority(others.path(), kNow, false));
  std::filesystem::copy_file(others.path() + "/ca.key", ours.path() + "/ca.key",
                             std::filesystem::copy_options::overwrite_existing);
  const auto made = create_node(ours.path(), "n", {}, kNow, false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, core::Errc::config);
  EXPECT_NE(made.error().message.find("does not belong to the certificate"), std::string::npos) << made.error().message;
  EXPECT_EQ(ours.entries(), 2u);  // its ca
}

TEST(Authority, KeysOfEachAreItsOwn) {
  const Identity one = make_authority(authority_validity(kNow)).value();
  const Identity two = make_authority(authority_validity(kNow)).value();
  EXPECT_NE(EVP_PKEY_eq(one.key.get(), two.key.get()), 1);
  EXPECT_NE(
      ASN1_INTEGER_cmp(X509_get0_serialNumber(one.certificate.get()), X509_get0_serialNumber(two.certificate.get())),
      0);
}

TEST(Authority, FailedCommandChangesNothingInTheDirectory) {
  const tests::Folder directory;
  EXPECT_EQ(create_node(directory.path(), "n", {}, kNow, false).error().code, core::Errc::config);
  ASSERT_TRUE(create_authority(directory.path(), kNow, false));
  EXPECT_EQ(create_authority(directory.path(), kNow, false).error().code, core::Errc::usage);
  ASSERT_TRUE(create_node(directory.path(), "n", {}, kNow, false));
  EXPECT_EQ(create_node(directory.path(), "n", {}, kNow, false).error().code, core::Errc::usage);
  // An expired authority signs no certificate.
  const auto late = create_node(directory.path(), "m", {}, kNow + 4000 * kDay, false);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, core::Errc::config);
  EXPECT_NE(late.error().message.find("expired"), std::string::npos) << late.error().message;
  EXPECT_EQ(directory.entries(), 4u);  // ca and n
}

}  // namespace
}  // namespace troupe::security
