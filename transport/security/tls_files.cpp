#include "transport/security/tls_files.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "transport/security/private_file.hpp"

namespace troupe::security {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

core::Result<Bio> open_text(const std::string& text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!bio) return core::fail(core::Errc::out_of_memory, "TLS: memory ran out");
  return bio;
}

core::Result<std::string> read_text(const std::string& path) {
  auto text = read_file(path);
  if (!text)
    return core::fail(core::Errc::config,
                      fmt::format("TLS: {}: give the file that `troupe certs` made", text.error().message));
  return text;
}

std::string date(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || ASN1_TIME_print(bio.get(), time) != 1) return "an unreadable date";
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

core::Result<void> signed_by(const TlsFiles& files, X509* authority, X509* certificate, std::time_t now) {
  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_add_cert(store.get(), authority) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr) != 1)
    return core::fail(core::Errc::internal,
                      fmt::format("TLS: cannot check {}: {}", files.certificate, openssl_reason()));
  X509_STORE_CTX_set_time(context.get(), 0, now);
  if (X509_verify_cert(context.get()) == 1) return {};
  const char* why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  ERR_clear_error();
  return core::fail(core::Errc::config,
                    fmt::format("TLS: {} is not signed by the authority in {} ({}): take both from one `troupe certs` "
                                "directory",
                                files.certificate, files.ca, why));
}

}  // namespace

core::Result<void> check_complete(const TlsFiles& files) {
  if (files.empty()) return {};
  std::vector<std::string> set, missing;
  for (const auto& [what, path] : {std::pair{"the authority's certificate", &files.ca},
                                   {"this node's certificate", &files.certificate},
                                   {"this node's key", &files.key}})
    (path->empty() ? missing : set).emplace_back(what);
  if (missing.empty()) return {};
  return core::fail(core::Errc::config,
                    fmt::format("TLS is set half-way: there is {} but not {}; give all three files, or none",
                                fmt::join(set, " and "), fmt::join(missing, " and ")));
}

core::Result<Certificate> read_certificate(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  const auto bio = open_text(*text);
  if (!bio) return tl::unexpected(bio.error());
  Certificate certificate(PEM_read_bio_X509(bio->get(), nullptr, nullptr, nullptr));
  if (!certificate)
    return core::fail(core::Errc::config,
                      fmt::format("TLS: {} holds no certificate ({}): give a PEM file", path, openssl_reason()));
  return certificate;
}

core::Result<Key> read_key(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  const auto bio = open_text(*text);
  if (!bio) return tl::unexpected(bio.error());
  // Without it OpenSSL asks for the password of an encrypted key on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(bio->get(), nullptr, no_password, nullptr));
  if (!key)
    return core::fail(core::Errc::config,
                      fmt::format("TLS: {} holds no key that can be read without a password ({}): give a PEM file",
                                  path, openssl_reason()));
  return key;
}

core::Result<void> check_in_force(const std::string& path, X509* certificate, std::time_t now) {
  const ASN1_TIME* from = X509_get0_notBefore(certificate);
  const ASN1_TIME* until = X509_get0_notAfter(certificate);
  if (X509_cmp_time(from, &now) > 0)
    return core::fail(core::Errc::config,
                      fmt::format("TLS: {} is not valid before {}: look at this host's clock", path, date(from)));
  if (X509_cmp_time(until, &now) < 0)
    return core::fail(core::Errc::config,
                      fmt::format("TLS: {} expired on {}: make a new one with `troupe certs`", path, date(until)));
  return {};
}

core::Result<void> check(const TlsFiles& files, std::time_t now) {
  if (files.empty()) return core::fail(core::Errc::config, "TLS: no files are given");
  if (auto complete = check_complete(files); !complete) return complete;
  const auto authority = read_certificate(files.ca);
  if (!authority) return tl::unexpected(authority.error());
  const auto certificate = read_certificate(files.certificate);
  if (!certificate) return tl::unexpected(certificate.error());
  const auto key = read_key(files.key);
  if (!key) return tl::unexpected(key.error());
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    ERR_clear_error();
    return core::fail(core::Errc::config, fmt::format("TLS: the key {} does not belong to the certificate {}: take "
                                                      "both from one `troupe certs node`",
                                                      files.key, files.certificate));
  }
  if (auto current = check_in_force(files.ca, authority->get(), now); !current) return current;
  if (auto current = check_in_force(files.certificate, certificate->get(), now); !current) return current;
  return signed_by(files, authority->get(), certificate->get(), now);
}

}  // namespace troupe::security
