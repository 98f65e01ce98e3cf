/// How long whoever makes a site waits for its steps (site.hpp): at most. Who is lost meanwhile is heard of at once (stand_in.hpp).
#pragma once

#include <chrono>

namespace troupe::actors {

inline constexpr auto kEndpointDeadline = std::chrono::seconds(30);  // of a site in this process: to open
inline constexpr auto kOpenDeadline = std::chrono::minutes(5);       // at a node, which opens its data set first
inline constexpr auto kPrepareDeadline = std::chrono::minutes(10);   // compiling a large model takes a while
inline constexpr auto kMeasureDeadline = std::chrono::minutes(10);   // on a slow link
inline constexpr auto kFetchDeadline = std::chrono::minutes(10);     // so does a checkpoint
inline constexpr auto kHaltDeadline = std::chrono::seconds(30);      // ending takes at most the step that is under way
/// For a site at a node to end, as its own members do.
inline constexpr auto kSiteHaltDeadline = kHaltDeadline + std::chrono::seconds(10);

}  // namespace troupe::actors
