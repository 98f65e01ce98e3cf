// The part of FabricEndpoint that handles checksums of device memory, which the device computes.
#include <utility>

#include "transport/fabric/endpoint.hpp"

namespace troupe::transport {
namespace {

constexpr std::string_view kDeviceFailed = "the device failed at a message's checksum";

}  // namespace

void FabricEndpoint::summed(const Checksums::Ended& ended) {
  const Summing summing = summing_.extract(ended.id).mapped();
  Link& link = at(summing.peer);
  if (summing.is_send)
    summed_send(link, summing, ended.sum);
  else
    summed_receive(link, summing, ended.sum);
}

void FabricEndpoint::summed_send(Link& link, const Summing& summing, const core::Result<std::uint64_t>& sum) {
  Sending& sending = link.sends.at(summing.operation);
  sending.summing = false;
  if (!sum) {
    sending.failed = sum.error();
    if (!link.lost && !sending.moving) {  // it ends before the others: it says why
      finish({.operation = summing.operation, .peer = link.peer, .outcome = Outcome::failed, .error = sum.error()});
      link.sends.erase(summing.operation);
    }
    if (!link.lost) return end(link, Outcome::failed, kDeviceFailed, kDeviceFailed);
  }
  if (link.lost) return release_send(link, summing.operation);
  reply(link, {.kind = FrameKind::sum, .operation = static_cast<std::uint64_t>(summing.transfer), .tag = *sum});
  complete_send(link, summing.operation);
}

void FabricEndpoint::summed_receive(Link& link, const Summing& summing, const core::Result<std::uint64_t>& sum) {
  if (sum && !link.lost) return check_receive(link, summing.transfer, *sum);
  link.arriving.erase(summing.transfer);
  const bool cancelled = link.lost && link.ending == Outcome::cancelled;
  if (sum || cancelled) return finish(lost_with(link, summing.operation));
  finish({.operation = summing.operation, .peer = link.peer, .outcome = Outcome::failed, .error = sum.error()});
  if (!link.lost) end(link, Outcome::failed, kDeviceFailed, kDeviceFailed);
}

void FabricEndpoint::release_send(Link& link, OperationId operation) {
  const auto found = link.sends.find(operation);
  if (found == link.sends.end() || found->second.is_in_use()) return;  // it has ended with the others, or will
  Completion ended = lost_with(link, operation);
  if (found->second.failed && ended.outcome == Outcome::failed) ended.error = *found->second.failed;
  link.sends.erase(found);
  finish(std::move(ended));
}

}  // namespace troupe::transport
