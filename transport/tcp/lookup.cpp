#include "transport/tcp/lookup.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

using Found = core::Result<TcpEndpoints>;

/// Shared by the resolver thread and the waiting coroutine, which may end before there is an answer.
class Question {
 public:
  explicit Question(std::function<void(Found)> tell) : tell_(std::move(tell)) {}
  void answer(Found found) {
    const std::lock_guard lock(mutex_);
    if (tell_) tell_(std::move(found));
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    tell_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::function<void(Found)> tell_;  // empty: the coroutine has ended
};

/// Drops its question when the coroutine ends, also when its io_context ends it.
struct Asker {
  std::shared_ptr<Question> question;
  explicit Asker(std::shared_ptr<Question> asked) : question(std::move(asked)) {}
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  ~Asker() { question->drop(); }
};

Found ask(const HostPort& at) {
  asio::io_context own;
  tcp::resolver resolver(own);
  SystemError error;
  const auto entries = resolver.resolve(at.host, std::to_string(at.port), tcp::resolver::numeric_service, error);
  if (error || entries.empty())
    return core::fail(core::Errc::config, fmt::format("host {} cannot be found: {}", at.host, error.message()));
  TcpEndpoints found;
  for (const auto& entry : entries) found.push_back(entry.endpoint());
  return found;
}

}  // namespace

asio::awaitable<Found> look_up(std::shared_ptr<TcpCall> call, HostPort at, core::Duration most) {
  SystemError error;
  const asio::ip::address number = asio::ip::make_address(at.host, error);
  if (!error) co_return TcpEndpoints{tcp::endpoint(number, at.port)};
  const auto answer = std::make_shared<std::optional<Found>>();
  const auto tell = [call, answer](Found found) {
    asio::post(call->lookup.get_executor(), [call, answer, found = std::move(found)] {
      *answer = found;
      call->lookup.cancel();
    });
  };
  const Asker asker(std::make_shared<Question>(tell));
  call->lookup.expires_after(most);
  std::thread([question = asker.question, at] { question->answer(ask(at)); }).detach();
  co_await call->lookup.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (!*answer)
    co_return core::fail(core::Errc::peer_lost, fmt::format("the address of host {} was not found in time: look at the "
                                                            "name server",
                                                            at.host));
  co_return std::move(**answer);
}

}  // namespace troupe::transport
