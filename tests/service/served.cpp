#include "tests/service/served.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "service/jobs/service_folder.hpp"

namespace troupe::service {

Served::Served(const Limits& limits, const std::function<void(const tests::Folder&)>& runs,
               std::shared_ptr<SSL_CTX> tls, const UploadLimits& uploads) {
  runs(folder_);
  const auto hidden = service_folder(folder_.path());
  auto users = Users::open(hidden.value() + "/users.json");
  for (const auto role : {Role::read, Role::run, Role::admin})
    tokens_[role] = users->add(std::string(name(role)) + "-user", role).value();
  auto started = Service::start({.directory = folder_.path(),
                                 .listen = {"127.0.0.1", 0},
                                 .hosts = {"train.example.org"},
                                 .tls = std::move(tls),
                                 .limits = limits,
                                 .version = "1.2.3",
                                 .uploads = uploads},
                                std::make_shared<Users>(std::move(*users)));
  if (!started) throw std::runtime_error(started.error().message);
  service_ = std::move(*started);
}

std::string Served::authorization(Role role) const {
  return role == Role::none ? std::string() : fmt::format("Authorization: Bearer {}\r\n", token(role));
}

Reply Served::ask(std::string_view method, std::string_view target, Role role, std::string_view body,
                  std::string_view headers) const {
  Client client(port());
  client.send(request_text(method, target, authorization(role) + std::string(headers), body));
  return client.receive(method != "HEAD");
}

}  // namespace troupe::service
