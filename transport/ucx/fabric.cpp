#include "transport/ucx/fabric.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "transport/ucx/context.hpp"

namespace troupe::transport {
namespace {

constexpr unsigned kFrameMessage = 1;  // the id of our active message
constexpr std::chrono::milliseconds kGrace{200};
constexpr std::chrono::seconds kPatience{5};  // until UCX ends forced operations; then the worker is destroyed anyway

std::size_t pieces_of(std::size_t size) {
  return std::max<std::size_t>((size + Fabric::kMaxPieceBytes - 1) / Fabric::kMaxPieceBytes, 1);
}

/// The offset and length of piece `k`.
std::pair<std::size_t, std::size_t> piece_of(std::size_t size, std::size_t k) {
  const std::size_t at = k * Fabric::kMaxPieceBytes;
  return {at, std::min(Fabric::kMaxPieceBytes, size - at)};
}

/// UCX finds out itself for memory of the host, which may be that of a GPU's driver.
void set_memory_type(ucp_request_param_t& param, core::MemorySpace space) {
  if (space != core::MemorySpace::device) return;
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_CUDA;
}

core::Error refused(const char* what, ucs_status_t status) {
  return {core::Errc::io, fmt::format("UCX cannot {}: {}", what, ucs_status_string(status))};
}

std::string hex(const unsigned char* bytes, std::size_t size) {
  std::string text;
  text.reserve(2 * size);
  for (std::size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::optional<std::vector<unsigned char>> unhex(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.empty() || text.size() % 2 != 0) return std::nullopt;
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<unsigned char>(high << 4 | low));
  }
  return bytes;
}

}  // namespace

core::Result<std::unique_ptr<Fabric>> UcxFabric::make(const FabricOptions& options) {
  std::unique_ptr<UcxFabric> fabric(new UcxFabric);
  if (const auto started = fabric->start(options); !started) return tl::unexpected(started.error());
  return fabric;
}

core::Result<void> UcxFabric::start(const FabricOptions& options) {
  const auto context = make_ucx_context(options.transports);
  if (!context) return tl::unexpected(context.error());
  context_ = context->handle;
  takes_device_ = context->takes_device;

  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // the endpoint's mutex
  if (const auto s = ucp_worker_create(context_, &worker, &worker_); s != UCS_OK)
    return tl::unexpected(refused("make a worker", s));
  if (const auto s = ucp_worker_get_efd(worker_, &worker_fd_); s != UCS_OK)
    return tl::unexpected(refused("give its event descriptor", s));
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0)
    return core::fail(core::Errc::io, fmt::format("cannot create the event descriptor of a ucx endpoint: {}",
                                                  std::generic_category().message(errno)));

  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kFrameMessage;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = on_active_message;
  handler.arg = this;
  if (const auto s = ucp_worker_set_am_recv_handler(worker_, &handler); s != UCS_OK)
    return tl::unexpected(refused("take active messages", s));

  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  if (const auto s = ucp_worker_get_address(worker_, &address, &length); s != UCS_OK)
    return tl::unexpected(refused("give its address", s));
  // Ports and UCX's worker numbers are reused: the nonce makes this address unique.
  std::random_device random;
  address_ =
      fmt::format("{:08x}{:08x}.{}", random(), random(), hex(reinterpret_cast<const unsigned char*>(address), length));
  ucp_worker_release_address(worker_, address);
  return {};
}

UcxFabric::~UcxFabric() {
  if (worker_) ucp_worker_destroy(worker_);
  if (context_) ucp_cleanup(context_);
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

core::Result<WireId> UcxFabric::open(std::string_view address) {
  const auto dot = address.find('.');
  const auto bytes = dot == std::string_view::npos ? std::nullopt : unhex(address.substr(dot + 1));
  if (!bytes) return core::fail(core::Errc::usage, "its address is not one that UCX made");
  auto wire = std::make_unique<Wire>(Wire{.fabric = this, .id = WireId{next_wire_++}});
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(bytes->data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {.cb = on_error, .arg = wire.get()};
  if (const auto s = ucp_ep_create(worker_, &params, &wire->ep); s != UCS_OK)
    return core::fail(s == UCS_ERR_INVALID_ADDR ? core::Errc::usage : core::Errc::peer_lost,
                      fmt::format("UCX finds no way to it ({})", ucs_status_string(s)));
  const WireId id = wire->id;
  wires_.emplace(id, std::move(wire));
  return id;
}

UcxFabric::Request& UcxFabric::begin(Request::Kind kind, WireId wire, TransferId transfer) {
  Request& request = requests_.emplace_front(Request{.kind = kind, .fabric = this, .wire = wire, .transfer = transfer});
  request.self = requests_.begin();
  return request;
}

void UcxFabric::began(Request& request, void* handle) {
  if (UCS_PTR_IS_PTR(handle))
    request.handle = handle;
  else
    ended(request, UCS_PTR_STATUS(handle));
}

void UcxFabric::ended(Request& request, ucs_status_t status) {
  const auto wire = wires_.find(request.wire);
  switch (request.kind) {
    case Request::Kind::frame: break;
    case Request::Kind::release: wires_.erase(request.wire); break;
    case Request::Kind::flush:
      if (wire != wires_.end()) wire->second->flushed = true;
      break;
    case Request::Kind::send:
    case Request::Kind::receive: piece_ended(request.transfer, status == UCS_OK); break;
  }
  requests_.erase(request.self);
}

void UcxFabric::piece_ended(TransferId transfer, bool whole) {
  const auto cut = cuts_.find(transfer);
  cut->second.whole &= whole;
  const bool last = --cut->second.pieces_left == 0;
  events_.push_back(
      {.kind = last ? Event::Kind::transferred : Event::Kind::piece, .transfer = transfer, .whole = cut->second.whole});
  if (last) cuts_.erase(cut);
}

void UcxFabric::on_sent(void* handle, ucs_status_t status, void* request) {
  auto* self = static_cast<Request*>(request);
  ucp_request_free(handle);
  self->fabric->ended(*self, status);
}

void UcxFabric::on_received(void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info, void* request) {
  auto* self = static_cast<Request*>(request);
  if (status == UCS_OK && info->length != self->size) status = UCS_ERR_INVALID_PARAM;
  ucp_request_free(handle);
  self->fabric->ended(*self, status);
}

ucs_status_t UcxFabric::on_active_message(void* self, const void*, std::size_t, void* data, std::size_t length,
                                          const ucp_am_recv_param_t* param) {
  // This protocol's frames are never sent by rendezvous and are never longer than this.
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || length > kMaxFrameBytes) return UCS_OK;
  const auto* bytes = static_cast<const std::byte*>(data);
  static_cast<UcxFabric*>(self)->events_.push_back({.kind = Event::Kind::frame, .frame = {bytes, bytes + length}});
  return UCS_OK;
}

void UcxFabric::on_error(void* wire, ucp_ep_h, ucs_status_t status) {
  auto* self = static_cast<Wire*>(wire);
  if (std::exchange(self->lost, true) || self->closing) return;
  self->fabric->events_.push_back({.kind = Event::Kind::lost,
                                   .wire = self->id,
                                   .why = fmt::format("its connection broke ({})", ucs_status_string(status))});
}

void UcxFabric::send_frame(WireId wire, std::span<const std::byte> frame) {
  const auto found = wires_.find(wire);
  if (found == wires_.end() || found->second->lost) return;
  Request& request = begin(Request::Kind::frame, wire);
  request.frame.assign(frame.begin(), frame.end());
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = on_sent;
  param.user_data = &request;
  began(request, ucp_am_send_nbx(found->second->ep, kFrameMessage, nullptr, 0, request.frame.data(),
                                 request.frame.size(), &param));
}

/// Each piece has its own channel, counted from the returned one.
std::uint64_t UcxFabric::receive(WireId wire, MemoryView memory, TransferId transfer) {
  const std::uint64_t channel = next_channel_;
  const std::size_t pieces = pieces_of(memory.size);
  next_channel_ += pieces;
  cuts_[transfer] = {.pieces_left = pieces};
  for (std::size_t k = 0; k < pieces; ++k) {
    const auto [at, size] = piece_of(memory.size, k);
    Request& request = begin(Request::Kind::receive, wire, transfer);
    request.size = size;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.recv = on_received;
    param.user_data = &request;
    set_memory_type(param, memory.space);
    began(request, ucp_tag_recv_nbx(worker_, memory.data + at, size, channel + k, ~std::uint64_t{0}, &param));
  }
  return channel;
}

void UcxFabric::send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) {
  const std::size_t pieces = pieces_of(memory.size);
  cuts_[transfer] = {.pieces_left = pieces};
  for (std::size_t k = 0; k < pieces; ++k) {
    const auto [at, size] = piece_of(memory.size, k);
    Request& request = begin(Request::Kind::send, wire, transfer);
    const auto found = wires_.find(wire);
    if (found == wires_.end() || found->second->lost) {
      ended(request, UCS_ERR_CONNECTION_RESET);
      continue;
    }
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = on_sent;
    param.user_data = &request;
    set_memory_type(param, memory.space);
    began(request, ucp_tag_send_nbx(found->second->ep, memory.data + at, size, channel + k, &param));
  }
}

void UcxFabric::close(WireId wire) {
  const auto found = wires_.find(wire);
  if (found == wires_.end() || found->second->closing) return;
  Wire& w = *found->second;
  w.closing = true;
  w.give_up = Clock::now() + kGrace;
  closing_ += 1;
  std::vector<void*> receives;  // collected first: cancelling ends requests
  for (const Request& r : requests_)
    if (r.wire == wire && r.kind == Request::Kind::receive && r.handle) receives.push_back(r.handle);
  for (void* handle : receives) ucp_request_cancel(worker_, handle);
  if (w.lost) return;
  Request& request = begin(Request::Kind::flush, wire);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &request;
  began(request, ucp_ep_flush_nbx(w.ep, &param));
}

void UcxFabric::release(Wire& wire) {
  Request& request = begin(Request::Kind::release, wire.id);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  param.cb.send = on_sent;
  param.user_data = &request;
  began(request, ucp_ep_close_nbx(std::exchange(wire.ep, nullptr), &param));
}

bool UcxFabric::advance_closing() {
  if (closing_ == 0) return false;
  const auto now = Clock::now();
  std::vector<Wire*> over;  // collected first: releasing one may erase it
  for (const auto& [id, w] : wires_)
    if (w->closing && w->ep && (w->lost || w->flushed || now >= w->give_up)) over.push_back(w.get());
  for (Wire* wire : over) release(*wire);
  closing_ -= over.size();
  return !over.empty();
}

bool UcxFabric::dispatch(FabricEvents& events) {
  if (events_.empty()) return false;
  while (!events_.empty()) {
    Event event = std::move(events_.front());
    events_.pop_front();
    switch (event.kind) {
      case Event::Kind::frame: events.on_frame(event.frame); break;
      case Event::Kind::piece: events.on_piece(event.transfer); break;
      case Event::Kind::transferred: events.on_transferred(event.transfer, event.whole); break;
      case Event::Kind::lost: events.on_wire_lost(event.wire, std::move(event.why)); break;
    }
  }
  return true;
}

bool UcxFabric::progress(FabricEvents& events) {
  bool worked = ucp_worker_progress(worker_) != 0;
  worked |= advance_closing();
  return dispatch(events) || worked;
}

bool UcxFabric::prepare_to_wait() {
  wait_ms_ = closing_ > 0 ? static_cast<int>(kGrace.count()) : -1;
  return events_.empty() && ucp_worker_arm(worker_) == UCS_OK;
}

void UcxFabric::wait() noexcept {
  pollfd watched[2] = {{worker_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  ::poll(watched, 2, wait_ms_);
  eventfd_t ignored = 0;
  ::eventfd_read(wake_fd_, &ignored);
}

void UcxFabric::wake() noexcept { ::eventfd_write(wake_fd_, 1); }

void UcxFabric::flush_worker() {
  Request& request = begin(Request::Kind::flush, WireId{});
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &request;
  began(request, ucp_worker_flush_nbx(worker_, &param));
}

void UcxFabric::shutdown(FabricEvents& events) noexcept {
  std::vector<WireId> all;
  for (const auto& [id, wire] : wires_) all.push_back(id);
  for (const WireId id : all) close(id);
  const auto settle = [&](std::chrono::milliseconds patience) {
    const auto give_up = Clock::now() + patience;
    while ((closing_ > 0 || !requests_.empty()) && Clock::now() < give_up) {
      if (progress(events)) continue;
      pollfd watched{worker_fd_, POLLIN, 0};
      if (prepare_to_wait()) ::poll(&watched, 1, 5);
    }
  };
  settle(kPatience);
  // UCX 1.13 aborts the process if a worker is destroyed while it holds the answer to a peer's first message.
  flush_worker();
  settle(kGrace);
  ucp_worker_destroy(std::exchange(worker_, nullptr));  // after this UCX accesses no memory
  std::erase_if(events_, [](const Event& event) { return event.kind != Event::Kind::transferred; });
  for (const auto& [transfer, cut] : cuts_) events_.push_back({.kind = Event::Kind::transferred, .transfer = transfer});
  cuts_.clear();
  requests_.clear();
  dispatch(events);
}

}  // namespace troupe::transport
