#include "transport/security/tls_context.hpp"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::security {
namespace {

constexpr long kLongestChain = 16 << 10;  // bytes; ours have 700. Its sender is not authenticated yet

using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

std::string text_of(const GENERAL_NAME& name) {
  int kind = 0;
  const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(&name, &kind));
  const auto* bytes = ASN1_STRING_get0_data(value);
  const auto size = ASN1_STRING_length(value);
  if (kind == GEN_DNS) return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool known = kind == GEN_IPADD && (size == 4 || size == 16) &&
                     ::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text.data(), text.size()) != nullptr;
  return known ? text.data() : "a name of another kind";
}

std::vector<std::string> names_in(X509* certificate) {
  std::vector<std::string> texts;
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i)
    texts.push_back(text_of(*sk_GENERAL_NAME_value(names.get(), i)));
  return texts;
}

}  // namespace

core::Result<std::shared_ptr<SSL_CTX>> make_tls_context(const TlsFiles& files, std::time_t now) {
  if (const auto checked = check(files, now); !checked) return tl::unexpected(checked.error());
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_load_verify_file(context.get(), files.ca.c_str()) != 1 ||
      SSL_CTX_use_certificate_file(context.get(), files.certificate.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return core::fail(core::Errc::config, fmt::format("TLS: cannot load {}, {} and {}: {}", files.ca, files.certificate,
                                                      files.key, openssl_reason()));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // A resumed session skips the certificate check; connections here are few and long.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_max_cert_list(context.get(), kLongestChain);
  return context;
}

core::Result<void> check_names(const TlsFiles& files, const std::string& host) {
  const auto certificate = read_certificate(files.certificate);
  if (!certificate) return tl::unexpected(certificate.error());
  if (names_host(certificate->get(), host)) return {};
  return core::fail(core::Errc::config,
                    fmt::format("TLS: {} does not name {}, where others would look for this process: it names {}. Make "
                                "one with `troupe certs node NAME --host {}`",
                                files.certificate, host, fmt::join(names_in(certificate->get()), ", "), host));
}

bool names_host(X509* certificate, const std::string& host) {
  if (certificate == nullptr) return false;
  if (X509_check_ip_asc(certificate, host.c_str(), 0) == 1) return true;
  return X509_check_host(certificate, host.c_str(), host.size(),
                         X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) == 1;
}

}  // namespace troupe::security
