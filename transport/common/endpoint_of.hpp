/// An Endpoint that forwards to one implementation object; the common part of tcp and shm. Internal to transport/. Thread rule and
/// errors: those of Endpoint. Owns the object and closes it.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include "transport/endpoint.hpp"

namespace troupe::transport {

/// `Member` has the operations of an Endpoint from connect() to close(). This class checks the memory before it forwards.
template <class Member>
class EndpointOf final : public Endpoint {
 public:
  /// Constant for the endpoint's life. The pointers are to parts of the member.
  struct Face {
    Capabilities capabilities{};
    Address address{};
    CompletionQueue* completions = nullptr;
    MappedMemory* mapped_memory = nullptr;
  };

  EndpointOf(std::unique_ptr<Member> member, Face face) : member_(std::move(member)), face_(std::move(face)) {}
  ~EndpointOf() override { member_->close(); }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return face_.capabilities; }
  [[nodiscard]] const Address& address() const noexcept override { return face_.address; }
  [[nodiscard]] CompletionQueue& completions() const noexcept override { return *face_.completions; }
  [[nodiscard]] MappedMemory* mapped_memory() noexcept override { return face_.mapped_memory; }

  [[nodiscard]] core::Result<Connection> connect(const Address& remote) override { return member_->connect(remote); }
  void disconnect(Peer peer, std::string_view why) override { member_->disconnect(peer, why); }
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory) override {
    check_memory(memory.space, memory.size);
    return member_->send(peer, tag, memory);
  }
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory) override {
    check_memory(memory.space, memory.size);
    return member_->receive(peer, tag, memory);
  }
  void cancel(OperationId operation) override { member_->cancel(operation); }
  [[nodiscard]] Traffic traffic(Peer peer) const override { return member_->traffic(peer); }
  [[nodiscard]] std::uint64_t progress(Peer peer) const override { return member_->progress(peer); }
  void close() noexcept override { member_->close(); }

 private:
  void check_memory(core::MemorySpace space, std::size_t bytes) const {
    const auto refuse = [this](const char* why) {
      throw std::invalid_argument(face_.capabilities.name + ": " + why + "; ask capabilities()");
    };
    if (!face_.capabilities.takes(space)) refuse("cannot reach this memory space");
    if (bytes > face_.capabilities.max_message_bytes) refuse("message too long");
  }

  const std::unique_ptr<Member> member_;
  const Face face_;
};

}  // namespace troupe::transport
