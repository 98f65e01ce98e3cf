#include "transport/security/tls_context.hpp"

#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "transport/security/authority.hpp"

namespace troupe::security {
namespace {

TEST(TlsContext, RequiresCertificatesAndNoOldProtocol) {
  const tests::Folder directory;
  const std::time_t now = std::time(nullptr);
  ASSERT_TRUE(create_authority(directory.path(), now, false));
  const TlsFiles files = create_node(directory.path(), "node", {}, now, false).value();
  const auto context = make_tls_context(files, now).value();
  EXPECT_EQ(SSL_CTX_get_min_proto_version(context.get()), TLS1_2_VERSION);
  EXPECT_EQ(SSL_CTX_get_max_cert_list(context.get()), 16 << 10);  // limits a pending connection
  EXPECT_EQ(SSL_CTX_get_verify_mode(context.get()), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
}

TEST(TlsContext, IncompleteFilesAreRefused) {
  EXPECT_EQ(make_tls_context({}, 0).error().code, core::Errc::config);
  EXPECT_EQ(make_tls_context({"a", "b", ""}, 0).error().code, core::Errc::config);
}

TEST(TlsContext, ACertificateMustNameTheHostOfItsProcess) {
  const tests::Folder directory;
  const std::time_t now = std::time(nullptr);
  ASSERT_TRUE(create_authority(directory.path(), now, false));
  const TlsFiles files = create_node(directory.path(), "node1", {"10.0.0.11", "n1.cluster"}, now, false).value();
  for (const char* named : {"node1", "10.0.0.11", "n1.cluster", "127.0.0.1", "::1", "localhost"})
    EXPECT_TRUE(check_names(files, named)) << named;
  const auto refused = check_names(files, "10.0.0.12");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
  for (const char* part : {"node1.pem does not name 10.0.0.12", "10.0.0.11", "n1.cluster", "127.0.0.1", "::1",
                           "`troupe certs node NAME --host 10.0.0.12`"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
}

TEST(TlsContext, NoCertificateNamesNoHost) { EXPECT_FALSE(names_host(nullptr, "localhost")); }

}  // namespace
}  // namespace troupe::security
