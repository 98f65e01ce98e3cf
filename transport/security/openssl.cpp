#include "transport/security/openssl.hpp"

#include <openssl/err.h>

namespace troupe::security {

std::string openssl_reason() {
  const unsigned long first = ERR_get_error();  // the later errors only come from callers of the failed function
  ERR_clear_error();
  const char* reason = first == 0 ? nullptr : ERR_reason_error_string(first);
  return reason != nullptr ? reason : "no reason given";
}

}  // namespace troupe::security
