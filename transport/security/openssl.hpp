/// Owners for OpenSSL's objects, and its reasons as text. Thread rule: OpenSSL keeps its errors per thread; the objects
/// are plain values, of one thread at a time.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace troupe::security {

template <auto kFree>
struct Freed {
  template <class Object>
  void operator()(Object* object) const noexcept {
    kFree(object);
  }
};

using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

/// Why the last call of this thread failed, "no reason given" when OpenSSL did not say; forgets what it tells.
[[nodiscard]] std::string openssl_reason();

}  // namespace troupe::security
