#include "transport/security/authority.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "transport/security/private_file.hpp"

namespace troupe::security {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr std::time_t kHour = 3600;
constexpr std::time_t kYear = 365 * 24 * kHour;
constexpr std::size_t kLongestName = 64;   // X.520: of a common name
constexpr std::size_t kLongestHost = 253;  // RFC 1035
constexpr int kSerialBits = 159;           // RFC 5280: at most 20 octets, positive

core::Result<void> check_openssl(bool good, std::string_view doing) {
  if (good) return {};
  return core::fail(core::Errc::internal, fmt::format("TLS: cannot {}: {}", doing, openssl_reason()));
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return ::inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1;
}

/// Letters, digits, dots, hyphens and (for names other than hosts) underscores: no character has a meaning in a path or in OpenSSL's
/// configuration syntax.
bool is_name(const std::string& name, std::size_t longest) {
  return !name.empty() && name.size() <= longest && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                  c == '_';
         });
}

bool extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  const Number number(BN_new());
  return number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

/// A certificate without issuer, extensions and signature.
core::Result<Identity> draft(const std::string& name, Validity validity) {
  Identity made{Certificate(X509_new()), Key(EVP_EC_gen("P-256"))};
  X509* x = made.certificate.get();
  if (auto good = check_openssl(x != nullptr && made.key != nullptr, "make a key"); !good)
    return tl::unexpected(good.error());
  X509_NAME* subject = X509_get_subject_name(x);
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  const bool good = X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
                    ASN1_TIME_set(X509_getm_notBefore(x), validity.from) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(x), validity.until) != nullptr &&
                    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 &&
                    X509_set_pubkey(x, made.key.get()) == 1;
  if (auto drafted = check_openssl(good, "make a certificate"); !drafted) return tl::unexpected(drafted.error());
  return made;
}

core::Result<Identity> read_authority(const std::string& directory) {
  const TlsFiles files = files_of(directory, "ca");
  auto certificate = read_certificate(files.ca);
  if (!certificate)
    return core::fail(core::Errc::config, fmt::format("{} (`troupe certs init --directory {}` makes an authority)",
                                                      certificate.error().message, directory));
  auto key = read_key(files.key);
  if (!key) return tl::unexpected(key.error());
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    ERR_clear_error();
    return core::fail(core::Errc::config,
                      fmt::format("TLS: the key {} does not belong to the certificate {}: take both "
                                  "from one `troupe certs init`",
                                  files.key, files.ca));
  }
  return Identity{std::move(*certificate), std::move(*key)};
}

core::Result<std::string> pem_of(const Identity& identity, bool key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  const bool good =
      bio && (key ? PEM_write_bio_PKCS8PrivateKey(bio.get(), identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr)
                  : PEM_write_bio_X509(bio.get(), identity.certificate.get())) == 1;
  if (auto written = check_openssl(good, "encode a certificate"); !written) return tl::unexpected(written.error());
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

core::Result<void> refuse_existing(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    const auto status = std::filesystem::symlink_status(path, error);
    if (std::filesystem::exists(status))
      return core::fail(core::Errc::usage, fmt::format("{} is there already: give --force to replace it", path));
    if (status.type() == std::filesystem::file_type::none)  // as opposed to an error: the file does not exist
      return tl::unexpected(core::from_errno(error.value(), "look for", path));
  }
  return {};
}

core::Result<void> create_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "create directory", directory));
  return {};
}

}  // namespace

Validity authority_validity(std::time_t now) { return {now - kHour, now + 10 * kYear}; }
Validity node_validity(std::time_t now) { return {now - kHour, now + 2 * kYear}; }

core::Result<Identity> make_authority(Validity validity) {
  auto made = draft("troupe cluster authority", validity);
  if (!made) return made;
  X509* x = made->certificate.get();
  const bool good =
      X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
      extend(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      extend(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") && extend(x, x, NID_subject_key_identifier, "hash") &&
      extend(x, x, NID_authority_key_identifier, "keyid:always") && X509_sign(x, made->key.get(), EVP_sha256()) > 0;
  if (auto signed_now = check_openssl(good, "sign the authority"); !signed_now)
    return tl::unexpected(signed_now.error());
  return made;
}

core::Result<Identity> make_node(const Identity& authority, const std::string& name,
                                 const std::vector<std::string>& hosts, Validity validity) {
  if (!is_name(name, kLongestName) || name == "ca")
    return core::fail(core::Errc::usage,
                      fmt::format("'{}' is no name for a node: use letters, digits, '.', '-' and '_'; at most 64, and "
                                  "not 'ca'",
                                  name));
  std::vector<std::string> all{name, "localhost", "127.0.0.1", "::1"};
  for (const std::string& host : hosts) {
    if (!is_address(host) && !is_name(host, kLongestHost))
      return core::fail(core::Errc::usage, fmt::format("'{}' is neither a host name nor an IP address (give it without "
                                                       "port and brackets)",
                                                       host));
    if (std::ranges::find(all, host) == all.end()) all.push_back(host);
  }
  std::string names;
  for (const std::string& host : all)
    names += fmt::format("{}{}:{}", names.empty() ? "" : ",", is_address(host) ? "IP" : "DNS", host);
  auto made = draft(name, validity);
  if (!made) return made;
  X509* x = made->certificate.get();
  X509* issuer = authority.certificate.get();
  const bool good = X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 &&
                    extend(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                    extend(x, issuer, NID_key_usage, "critical,digitalSignature") &&
                    extend(x, issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
                    extend(x, issuer, NID_subject_key_identifier, "hash") &&
                    extend(x, issuer, NID_authority_key_identifier, "keyid:always") &&
                    extend(x, issuer, NID_subject_alt_name, names) &&
                    X509_sign(x, authority.key.get(), EVP_sha256()) > 0;
  if (auto signed_now = check_openssl(good, "sign a certificate"); !signed_now)
    return tl::unexpected(signed_now.error());
  return made;
}

TlsFiles files_of(const std::string& directory, const std::string& name) {
  return {fmt::format("{}/ca.pem", directory), fmt::format("{}/{}.pem", directory, name),
          fmt::format("{}/{}.key", directory, name)};
}

core::Result<Pem> to_pem(const Identity& identity) {
  auto key = pem_of(identity, true);
  if (!key) return tl::unexpected(key.error());
  auto certificate = pem_of(identity, false);
  if (!certificate) return tl::unexpected(certificate.error());
  return Pem{std::move(*certificate), std::move(*key)};
}

core::Result<void> write_identity(const Identity& identity, const std::string& certificate_path,
                                  const std::string& key_path) {
  const auto pem = to_pem(identity);
  if (!pem) return tl::unexpected(pem.error());
  if (auto written = replace_file(key_path, pem->key, kForOwner); !written) return written;
  return replace_file(certificate_path, pem->certificate, kForAll);
}

core::Result<void> create_authority(const std::string& directory, std::time_t now, bool force) {
  const TlsFiles files = files_of(directory, "ca");
  if (!force)
    if (auto none = refuse_existing({files.certificate, files.key}); !none) return none;
  if (auto created = create_directory(directory); !created) return created;
  const auto made = make_authority(authority_validity(now));
  if (!made) return tl::unexpected(made.error());
  return write_identity(*made, files.certificate, files.key);
}

core::Result<TlsFiles> create_node(const std::string& directory, const std::string& name,
                                   const std::vector<std::string>& hosts, std::time_t now, bool force) {
  const auto authority = read_authority(directory);
  if (!authority) return tl::unexpected(authority.error());
  if (const auto current = check_in_force(files_of(directory, name).ca, authority->certificate.get(), now); !current)
    return tl::unexpected(current.error());
  const auto made = make_node(*authority, name, hosts, node_validity(now));
  if (!made) return tl::unexpected(made.error());
  const TlsFiles files = files_of(directory, name);
  if (!force)
    if (auto none = refuse_existing({files.certificate, files.key}); !none) return tl::unexpected(none.error());
  if (auto written = write_identity(*made, files.certificate, files.key); !written)
    return tl::unexpected(written.error());
  if (auto good = check(files, now); !good) return tl::unexpected(good.error());  // the check that a node makes
  return files;
}

}  // namespace troupe::security
