/// A backend that passes everything on to another one, and lets a test see what is compiled. Thread-safe as its functions are.
#pragma once

#include <functional>
#include <string>

#include "nn/backend.hpp"

namespace troupe::tests {

class WatchedBackend final : public nn::Backend {
 public:
  /// `backend` outlives this object.
  explicit WatchedBackend(nn::Backend& backend) : backend_(backend) {}
  [[nodiscard]] std::string name() const override { return backend_.name(); }
  [[nodiscard]] nn::Capabilities capabilities() const override { return backend_.capabilities(); }
  [[nodiscard]] core::Allocator& arenas(const nn::CompileOptions& options) noexcept override {
    return backend_.arenas(options);
  }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return backend_.kernels(); }
  [[nodiscard]] const core::Kernels& kernels_for(const core::Allocator& memory) const noexcept override {
    return backend_.kernels_for(memory);
  }
  [[nodiscard]] std::string device_model(const nn::CompileOptions& options) override {
    return model ? model(options) : backend_.device_model(options);
  }
  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    on_compile(options);
    return backend_.compile(graph, options);
  }

  std::function<void(const nn::CompileOptions&)> on_compile = [](const nn::CompileOptions&) {};
  std::function<std::string(const nn::CompileOptions&)> model;  // empty: the other one's

 private:
  nn::Backend& backend_;
};

}  // namespace troupe::tests
