#include "gpu/cuda/stream.hpp"

#include "gpu/cuda/ranges.hpp"

namespace troupe::gpu {
namespace {

/// Blocks of 256 threads for each multiprocessor: 8 run at a time, and a few waves hide what one of them waits for.
constexpr unsigned int kBlocksPerMultiprocessor = 32;

}  // namespace

CudaEvent::~CudaEvent() {
  context_->enter_quietly();
  (void)cudaEventDestroy(raw_);
}

CudaGraph::~CudaGraph() {
  context_->enter_quietly();
  (void)cudaGraphExecDestroy(raw_);
}

core::Result<std::unique_ptr<CudaStream>> CudaStream::make(std::shared_ptr<CudaContext> context,
                                                           std::shared_ptr<const CudaLibraries> libraries) {
  if (auto entered = context->enter(); !entered) return tl::unexpected(entered.error());
  std::unique_ptr<CudaStream> stream(new CudaStream(std::move(context), std::move(libraries)));
  auto made = stream->context_->check(cudaStreamCreateWithFlags(&stream->stream_, cudaStreamNonBlocking),
                                      "cudaStreamCreateWithFlags");
  if (!made) return tl::unexpected(made.error());
  return stream;
}

CudaStream::~CudaStream() {
  context_->enter_quietly();
  if (capturing_) (void)end_capture();
  if (stream_) (void)cudaStreamSynchronize(stream_);
  if (cudnn_) (void)libraries_->cudnn->destroy(cudnn_);
  if (cublas_) (void)libraries_->cublas->destroy(cublas_);
  if (stream_) (void)cudaStreamDestroy(stream_);
}

core::Result<void> CudaStream::copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                          const char* operation) {
  if (auto entered = context_->enter(); !entered) return entered;
  if (bytes == 0) return {};
  return context_->check(cudaMemcpyAsync(to, from, bytes, kind, stream_), operation);
}

core::Result<void> CudaStream::copy_to_device(void* device, const void* pinned, std::size_t bytes) {
  return copy_bytes(device, pinned, bytes, cudaMemcpyHostToDevice, "cudaMemcpyAsync to the device");
}

core::Result<void> CudaStream::copy_to_host(void* pinned, const void* device, std::size_t bytes) {
  return copy_bytes(pinned, device, bytes, cudaMemcpyDeviceToHost, "cudaMemcpyAsync to the host");
}

core::Result<void> CudaStream::copy(void* to, const void* from, std::size_t bytes) {
  return copy_bytes(to, from, bytes, cudaMemcpyDeviceToDevice, "cudaMemcpyAsync on the device");
}

core::Result<void> CudaStream::zero(void* device, std::size_t bytes) {
  if (auto entered = context_->enter(); !entered) return entered;
  if (bytes == 0) return {};
  return context_->check(cudaMemsetAsync(device, 0, bytes, stream_), "cudaMemsetAsync");
}

core::Result<void> CudaStream::launch(const Kernel& kernel) {
  if (auto entered = context_->enter(); !entered) return entered;
  const auto blocks = static_cast<unsigned int>(libraries_->multiprocessors) * kBlocksPerMultiprocessor;
  return context_->check(launch_kernel(kernel, {stream_, blocks}), "the launch of a kernel");
}

core::Result<void> CudaStream::make_handles() {
  if (!cudnn_) {
    const CudnnLibrary& library = *libraries_->cudnn;
    if (const auto status = library.create(&cudnn_); status != CUDNN_STATUS_SUCCESS) {
      cudnn_ = nullptr;
      return tl::unexpected(context_->library_error(library.error(status, "cudnnCreate")));
    }
    if (const auto status = library.set_stream(cudnn_, stream_); status != CUDNN_STATUS_SUCCESS) {
      (void)library.destroy(cudnn_);
      cudnn_ = nullptr;
      return tl::unexpected(context_->library_error(library.error(status, "cudnnSetStream")));
    }
  }
  if (!cublas_) {
    const CublasLibrary& library = *libraries_->cublas;
    if (const auto status = library.create(&cublas_); status != CUBLAS_STATUS_SUCCESS) {
      cublas_ = nullptr;
      return tl::unexpected(context_->library_error(library.error(status, "cublasLtCreate")));
    }
  }
  return {};
}

core::Result<void> CudaStream::run(const ConvolutionPlan& plan, const ConvolutionOperands& operands, void* workspace) {
  if (auto entered = context_->enter(); !entered) return entered;
  if (auto made = make_handles(); !made) return made;
  const auto& own = static_cast<const CudaConvolutionPlan&>(plan);
  if (auto ran = own.run(cudnn_, operands, workspace); !ran)
    return tl::unexpected(context_->library_error(ran.error()));
  const Cast cast = own.cast(operands, workspace);
  return cast.count == 0 ? core::Result<void>() : launch(Kernel(cast));
}

core::Result<void> CudaStream::run(const MatrixPlan& plan, const MatrixOperands& operands, void* workspace) {
  if (auto entered = context_->enter(); !entered) return entered;
  if (auto made = make_handles(); !made) return made;
  // By columns the factors change places (gpu/plans/matrix_call.hpp).
  auto ran = run_product(*libraries_->cublas, cublas_, static_cast<const CudaMatrixPlan&>(plan).plan(), operands.b,
                         operands.a, operands.d, operands.bias, workspace, stream_);
  if (!ran) return tl::unexpected(context_->library_error(ran.error()));
  return {};
}

core::Result<void> CudaStream::record(Event& event) {
  if (auto entered = context_->enter(); !entered) return entered;
  return context_->check(cudaEventRecord(static_cast<CudaEvent&>(event).raw(), stream_), "cudaEventRecord");
}

core::Result<void> CudaStream::wait(Event& event) {
  if (auto entered = context_->enter(); !entered) return entered;
  return context_->check(cudaStreamWaitEvent(stream_, static_cast<CudaEvent&>(event).raw(), 0), "cudaStreamWaitEvent");
}

core::Result<void> CudaStream::synchronize() {
  if (auto entered = context_->enter(); !entered) return entered;
  return context_->check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

core::Result<void> CudaStream::begin_capture() {
  if (auto entered = context_->enter(); !entered) return entered;
  if (auto made = make_handles(); !made) return made;
  // Thread-local: other workers' threads go on allocating memory meanwhile.
  auto begun =
      context_->check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  capturing_ = begun.has_value();
  return begun;
}

core::Result<std::unique_ptr<StepGraph>> CudaStream::end_capture() {
  if (!capturing_) return core::fail(core::Errc::io, "CUDA: no capture has begun");
  capturing_ = false;
  const auto entered = context_->enter();
  cudaGraph_t graph = nullptr;
  auto ended = context_->check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  if (ended && entered) {
    ended = context_->check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    if (ended) ended = context_->check(cudaGraphUpload(executable, stream_), "cudaGraphUpload");
  }
  if (graph) (void)cudaGraphDestroy(graph);
  if (!entered) return tl::unexpected(entered.error());
  if (!ended) {
    if (executable) (void)cudaGraphExecDestroy(executable);
    return tl::unexpected(ended.error());
  }
  return std::make_unique<CudaGraph>(context_, executable);
}

core::Result<void> CudaStream::launch(const StepGraph& graph) {
  if (auto entered = context_->enter(); !entered) return entered;
  return context_->check(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).raw(), stream_), "cudaGraphLaunch");
}

void CudaStream::push_range(const char* name) noexcept { push_profile_range(name); }

void CudaStream::pop_range() noexcept { pop_profile_range(); }

}  // namespace troupe::gpu
