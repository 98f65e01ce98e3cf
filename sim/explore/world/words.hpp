/// The vocabulary of the strategies and their hosts, unqualified: nearly every line here is about their events and actions.
#pragma once

#include "strategies/strategy.hpp"

namespace troupe::explore {

using namespace strategies;

}  // namespace troupe::explore
