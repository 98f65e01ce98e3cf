/// The names of strategies and hosts, unqualified: nearly every line here uses their events and actions.
#pragma once

#include "strategies/strategy.hpp"

namespace troupe::explore {

using namespace strategies;

}  // namespace troupe::explore
