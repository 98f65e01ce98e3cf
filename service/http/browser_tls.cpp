#include "service/http/browser_tls.hpp"

#include <fmt/format.h>

#include "transport/security/openssl.hpp"

namespace troupe::service {

core::Result<std::shared_ptr<SSL_CTX>> make_browser_tls(const security::TlsFiles& files, std::time_t now) {
  if (const auto checked = security::check(files, now); !checked) return tl::unexpected(checked.error());
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return core::fail(core::Errc::config, fmt::format("TLS: cannot load {} and {}: {}", files.certificate, files.key,
                                                      security::openssl_reason()));
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  return context;
}

}  // namespace troupe::service
