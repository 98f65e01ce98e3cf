/// Deadlines for the steps of making a site (actors/deployment/site.hpp), and the longest silence where bytes have to move (silence.hpp),
/// however long the whole transfer takes, or where a worker has to report. The loss of a member ends a wait at once (actors/protocol/proxy.hpp).
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::actors {

inline constexpr auto kEndpointDeadline = std::chrono::seconds(30);  // of a site in this process: to open
inline constexpr auto kOpenDeadline = std::chrono::minutes(5);       // at a node, which opens its data set first
inline constexpr auto kCompileDeadline = std::chrono::minutes(10);   // of a large model
inline constexpr auto kFetchSilence = std::chrono::minutes(10);      // of a checkpoint that is fetched
inline constexpr auto kMeasureSilence = std::chrono::minutes(10);    // of members that measure how they exchange
inline constexpr auto kDiskSilence = std::chrono::minutes(10);       // of a disk, within a call
inline constexpr auto kMargin = std::chrono::minutes(1);             // the requester waits longer than the actor asked
inline constexpr auto kRecorderSilence = kDiskSilence + kMargin;     // of the recorder, which itself waits for the disk
inline constexpr auto kPrepareSilence =
    kFetchSilence + kCompileDeadline + kMargin;                   // of a site at a node, compilation included
inline constexpr auto kAdmitSilence = kPrepareSilence + kMargin;  // of a newcomer
inline constexpr auto kStepSilence =
    std::chrono::minutes(10);  // of a worker within a step, or while its loader prepares it
inline constexpr auto kHaltDeadline = std::chrono::seconds(30);  // ending takes at most the current step
/// Of a loader that waits for a decoder: of one order, and of those of the other loaders before it.
[[nodiscard]] constexpr std::chrono::seconds decode_deadline(std::int64_t batch, std::int64_t loaders) {
  return std::chrono::minutes(5) + std::chrono::seconds(1) * batch * loaders;
}
/// For a site at a node to end; its own members have kHaltDeadline.
inline constexpr auto kSiteHaltDeadline = kHaltDeadline + std::chrono::seconds(10);

}  // namespace troupe::actors
