#include "transport/tcp/protocol/token.hpp"

#include <openssl/crypto.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace troupe::transport {

bool SessionToken::empty() const noexcept { return *this == SessionToken{}; }

bool SessionToken::operator==(const SessionToken& other) const noexcept {
  return CRYPTO_memcmp(bytes.data(), other.bytes.data(), bytes.size()) == 0;
}

SessionToken new_session_token() {
  SessionToken token;
  if (::getentropy(token.bytes.data(), token.bytes.size()) != 0)
    throw std::system_error(errno, std::generic_category(), "random bits of the system");
  return token;
}

}  // namespace troupe::transport
