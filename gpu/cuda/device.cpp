#include "gpu/cuda/device.hpp"

#include <fmt/format.h>

#include "gpu/cuda/sharing.hpp"

namespace troupe::gpu {
namespace {

/// The libraries propose dozens of engines, the good ones first.
constexpr int kMostPlans = 16;

/// The major number of the oldest compute capability that there is machine code for (troupe_cuda_language in cmake/Troupe.cmake).
constexpr int kOldestCompute = 8;

CudnnFilter filter_of(const Convolution& convolution, std::size_t workspace) {
  CudnnFilter filter;
  filter.workspace = workspace;
  filter.deterministic = convolution.deterministic;
  filter.tensor_cores = convolution.type != Type::fp32 || convolution.math == Math::tf32;
  return filter;
}

core::Error no_engine(const std::string& description, std::size_t workspace) {
  return {core::Errc::config,
          fmt::format("{}: no engine of the library computes this with {} bytes of workspace", description, workspace)};
}

/// A convolution's graph, and what its plans may use of the workspace.
struct Prepared {
  std::shared_ptr<const CudnnGraph> graph;
  CudnnFilter filter;
};

core::Result<Prepared> prepare(const CudnnTarget& target, const Convolution& convolution, std::size_t workspace) {
  const OperationGraph operations = operation_graph(convolution);
  const std::size_t cast = CudaConvolutionPlan::cast_bytes(operations);
  if (cast > workspace) return tl::unexpected(no_engine(to_string(convolution), workspace));
  auto graph = CudnnGraph::build(target, operations);
  // What a version of cuDNN does not know is no failure where the caller can do without.
  if (!graph && convolution.statistics && graph.error().code != core::Errc::out_of_memory)
    return core::fail(core::Errc::config, std::move(graph.error().message));
  if (!graph) return tl::unexpected(graph.error());
  return Prepared{std::make_shared<const CudnnGraph>(std::move(*graph)), filter_of(convolution, workspace - cast)};
}

}  // namespace

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version / 10 % 100); }

std::string no_devices_text(cudaError_t status, int driver) {
  if (status != cudaErrorInsufficientDriver) return cudaGetErrorString(status);
  return fmt::format("the driver is for CUDA {}, this program needs one for {} or later", version_text(driver),
                     version_text(CUDART_VERSION));
}

CudaDevice::CudaDevice(std::shared_ptr<CudaContext> context, std::shared_ptr<const CudaLibraries> libraries,
                       DeviceInfo info)
    : context_(std::move(context)),
      libraries_(std::move(libraries)),
      info_(std::move(info)),
      memory_(context_),
      pinned_(context_) {
  target_.library = libraries_->cudnn;
}

CudaDevice::~CudaDevice() {
  context_->enter_quietly();
  if (target_.handle) (void)libraries_->cudnn->destroy(target_.handle);
  if (cublas_) (void)libraries_->cublas->destroy(cublas_);
}

core::Result<std::shared_ptr<CudaDevice>> CudaDevice::make(int ordinal) {
  auto cudnn = CudnnLibrary::open();
  if (!cudnn) return tl::unexpected(cudnn.error());
  auto cublas = CublasLibrary::open();
  if (!cublas) return tl::unexpected(cublas.error());
  int devices = 0, driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return core::fail(core::Errc::config, "no NVIDIA driver is installed on this machine (libcuda.so.1)");
  if (const auto status = cudaGetDeviceCount(&devices); status != cudaSuccess) {
    (void)cudaGetLastError();
    return core::fail(core::Errc::config, fmt::format("CUDA finds no device: {}", no_devices_text(status, driver)));
  }
  if (ordinal < 0 || ordinal >= devices)
    return core::fail(core::Errc::config,
                      fmt::format("there is no CUDA device {}: this machine has {}", ordinal, devices));

  auto context = std::make_shared<CudaContext>(ordinal);
  if (auto entered = context->enter(); !entered) return tl::unexpected(entered.error());
  cudaDeviceProp properties{};
  auto read = context->check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  if (!read) return tl::unexpected(read.error());
  if (properties.major < kOldestCompute)
    return core::fail(core::Errc::config,
                      fmt::format("{} has compute capability {}.{}: this program needs {}.0 or later", properties.name,
                                  properties.major, properties.minor, kOldestCompute));
  DeviceInfo info;
  info.name = properties.name;
  info.uuid = uuid_text(properties.uuid);
  info.compute_major = properties.major;
  info.compute_minor = properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.memory = properties.totalGlobalMem;
  info.libraries = fmt::format("CUDA {}.{}, cuDNN {}, cuBLAS {}", CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100,
                               (*cudnn)->version(), (*cublas)->version());
  auto libraries = std::make_shared<CudaLibraries>();
  libraries->cudnn = *cudnn;
  libraries->cublas = *cublas;
  libraries->multiprocessors = properties.multiProcessorCount;
  return std::shared_ptr<CudaDevice>(new CudaDevice(std::move(context), std::move(libraries), std::move(info)));
}

core::Result<bool> CudaDevice::reach(Device& peer) {
  const auto* const other = dynamic_cast<const CudaDevice*>(&peer);
  if (other == nullptr) return false;
  const int from = context_->ordinal();
  const int to = other->context_->ordinal();
  if (from == to) return true;
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  int can = 0;
  if (auto asked = context_->check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer"); !asked)
    return tl::unexpected(asked.error());
  if (can == 0) return false;
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
    return true;
  }
  if (auto enabled = context_->check(status, "cudaDeviceEnablePeerAccess"); !enabled)
    return tl::unexpected(enabled.error());
  return true;
}

core::Result<std::shared_ptr<core::DeviceSharing>> CudaDevice::sharing() {
  return std::make_shared<CudaSharing>(context_);
}

core::Result<std::unique_ptr<Stream>> CudaDevice::make_stream() {
  auto stream = CudaStream::make(context_, libraries_);
  if (!stream) return tl::unexpected(stream.error());
  return std::move(*stream);
}

core::Result<std::unique_ptr<Event>> CudaDevice::make_event() {
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  cudaEvent_t event = nullptr;
  if (auto made = context_->check(cudaEventCreate(&event), "cudaEventCreate"); !made)
    return tl::unexpected(made.error());
  return std::make_unique<CudaEvent>(context_, event);
}

core::Result<void> CudaDevice::make_handles() {
  if (!target_.handle) {
    const auto status = libraries_->cudnn->create(&target_.handle);
    if (status != CUDNN_STATUS_SUCCESS) {
      target_.handle = nullptr;
      return tl::unexpected(context_->library_error(libraries_->cudnn->error(status, "cudnnCreate")));
    }
  }
  if (!cublas_) {
    const auto status = libraries_->cublas->create(&cublas_);
    if (status != CUBLAS_STATUS_SUCCESS) {
      cublas_ = nullptr;
      return tl::unexpected(context_->library_error(libraries_->cublas->error(status, "cublasLtCreate")));
    }
  }
  return {};
}

core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> CudaDevice::plans(const Convolution& convolution,
                                                                              std::size_t workspace) {
  const std::lock_guard lock(planning_);
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  if (auto made = make_handles(); !made) return tl::unexpected(made.error());
  const auto prepared = prepare(target_, convolution, workspace);
  if (!prepared) return tl::unexpected(prepared.error());
  auto found = prepared->graph->plans(target_, prepared->filter, kMostPlans);
  if (!found) return tl::unexpected(context_->library_error(found.error()));
  if (found->empty()) return tl::unexpected(no_engine(to_string(convolution), workspace));
  std::vector<std::unique_ptr<ConvolutionPlan>> plans;
  for (CudnnPlan& plan : *found)
    plans.push_back(std::make_unique<CudaConvolutionPlan>(convolution, prepared->graph, std::move(plan)));
  return plans;
}

core::Result<std::unique_ptr<ConvolutionPlan>> CudaDevice::plan(const Convolution& convolution, std::size_t workspace,
                                                                const std::string& engine) {
  const std::lock_guard lock(planning_);
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  if (auto made = make_handles(); !made) return tl::unexpected(made.error());
  const auto prepared = prepare(target_, convolution, workspace);
  if (!prepared) return tl::unexpected(prepared.error());
  std::string_view name = engine;
  if (name.ends_with(kCastSuffix)) name.remove_suffix(kCastSuffix.size());
  const auto wanted = parse_cudnn_engine(name);
  if (!wanted)
    return core::fail(core::Errc::config,
                      fmt::format("{}: \"{}\" is no engine of cuDNN", to_string(convolution), engine));
  auto found = prepared->graph->plan(target_, prepared->filter, *wanted);
  if (!found) return tl::unexpected(context_->library_error(found.error()));
  return std::make_unique<CudaConvolutionPlan>(convolution, prepared->graph, std::move(*found));
}

core::Result<std::vector<std::unique_ptr<MatrixPlan>>> CudaDevice::plans(const MatrixProduct& product,
                                                                         std::size_t workspace) {
  const std::lock_guard lock(planning_);
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  if (auto made = make_handles(); !made) return tl::unexpected(made.error());
  auto found = find_products(*libraries_->cublas, cublas_, matrix_call(product), {product.math, product.deterministic},
                             workspace, kMostPlans);
  if (!found) return tl::unexpected(context_->library_error(found.error()));
  if (found->empty()) return tl::unexpected(no_engine(to_string(product), workspace));
  std::vector<std::unique_ptr<MatrixPlan>> plans;
  for (CublasPlan& plan : *found) plans.push_back(std::make_unique<CudaMatrixPlan>(std::move(plan)));
  return plans;
}

core::Result<std::unique_ptr<MatrixPlan>> CudaDevice::plan(const MatrixProduct& product, std::size_t workspace,
                                                           const std::string& engine) {
  const std::lock_guard lock(planning_);
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  if (auto made = make_handles(); !made) return tl::unexpected(made.error());
  auto found = find_product(*libraries_->cublas, cublas_, matrix_call(product), {product.math, product.deterministic},
                            workspace, engine);
  if (!found) return tl::unexpected(context_->library_error(found.error()));
  return std::make_unique<CudaMatrixPlan>(std::move(*found));
}

core::Result<double> CudaDevice::seconds_between(const Event& first, const Event& second) {
  if (auto entered = context_->enter(); !entered) return tl::unexpected(entered.error());
  float milliseconds = 0;
  auto measured = context_->check(cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(first).raw(),
                                                       static_cast<const CudaEvent&>(second).raw()),
                                  "cudaEventElapsedTime");
  if (!measured) return tl::unexpected(measured.error());
  return static_cast<double>(milliseconds) / 1000;
}

}  // namespace troupe::gpu
