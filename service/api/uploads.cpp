#include "service/datasets/uploads.hpp"

#include <utility>

#include <fmt/format.h>

#include "service/api/answers.hpp"
#include "service/api/routes.hpp"

namespace troupe::service {
namespace {

constexpr std::chrono::minutes kLongestUnpacking{35};  // more than UploadLimits::unpacking

Response upload_failure(const core::Error& error) {
  using core::Errc;
  switch (error.code) {
    case Errc::usage: return failure(409, "usage", error.message);
    case Errc::data: return failure(400, "data", error.message);
    case Errc::no_space: return failure(507, "no_space", error.message);
    default: return failure(error);
  }
}

class DatasetSink final : public BodySink {
 public:
  explicit DatasetSink(std::unique_ptr<Uploads::Upload> made) : upload(std::move(made)) {}
  std::optional<Response> write(std::string_view piece) override {
    const auto written = upload->write(piece);
    return written ? std::nullopt : std::optional(upload_failure(written.error()));
  }
  const std::unique_ptr<Uploads::Upload> upload;
};

tl::expected<std::unique_ptr<BodySink>, Response> begin_upload(Context& context, const Request& request,
                                                               std::optional<std::uint64_t> length) {
  constexpr std::int64_t kMostPixels = 65535;
  const auto resize = request.number("resize", 0, 0, kMostPixels);
  if (!resize) return tl::unexpected(failure(resize.error()));
  auto upload = context.uploads->begin({.name = request.parameter("name"),
                                        .kind = request.query_value("kind").value_or(""),
                                        .path = {},
                                        .resize = *resize},
                                       length);
  if (!upload) return tl::unexpected(upload_failure(upload.error()));
  return std::make_unique<DatasetSink>(std::move(*upload));
}

Response end_upload(Context&, const Request& request) {
  auto* const sink = dynamic_cast<DatasetSink*>(request.sink.get());
  if (sink == nullptr) return failure(500, "internal", "the upload has no sink");
  const auto entry = sink->upload->finish(request.stop);
  if (!entry) return upload_failure(entry.error());
  return answer(dataset_row(*entry, Json::array()), 201);
}

}  // namespace

void add_upload_routes(Router& router, Context& context) {
  router.add(
      {.method = Method::put,
       .pattern = "/api/v1/datasets/{name}/upload",
       .role = Role::admin,
       .where = Where::unpacking,
       .handler = [&context](const Request& request) { return end_upload(context, request); },
       .answer_time = kLongestUnpacking,
       .open_body = [&context](const Request& request,
                               std::optional<std::uint64_t> length) { return begin_upload(context, request, length); },
       .body_bytes = context.upload_limits.bytes});
}

}  // namespace troupe::service
