#include "service/datasets/utf8_names.hpp"

namespace troupe::service {

Utf8Names::Utf8Names() : utf8_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
  if (utf8_ != nullptr) before_ = ::uselocale(utf8_);
}

Utf8Names::~Utf8Names() {
  if (utf8_ == nullptr) return;
  ::uselocale(before_);
  ::freelocale(utf8_);
}

}  // namespace troupe::service
