/// Owning pointers for OpenSSL objects, and OpenSSL's error reasons as text. Thread rule: OpenSSL keeps errors per thread; one thread at a
/// time uses an object.
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

/// Why the last OpenSSL call of this thread failed; "no reason given" without a recorded error. Clears the thread's recorded errors.
[[nodiscard]] std::string openssl_reason();

}  // namespace troupe::security
