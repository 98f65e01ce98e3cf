/// A service over a folder of runs, with a user of each role. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "service/service.hpp"
#include "tests/folder.hpp"
#include "tests/service/client.hpp"
#include "tests/store/run_folders.hpp"

namespace troupe::service {

inline constexpr std::string_view kRun = "20260102-030405-a";

class Served {
 public:
  /// `limits`: of the service. The folder has the run kRun unless `runs` writes others.
  explicit Served(const Limits& limits = {}, const std::function<void(const tests::Folder&)>& runs = one_run,
                  std::shared_ptr<SSL_CTX> tls = nullptr, const UploadLimits& uploads = {});

  [[nodiscard]] const tests::Folder& folder() const noexcept { return folder_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return service_->port(); }
  [[nodiscard]] const Service& service() const noexcept { return *service_; }
  void stop() { service_->stop(); }
  [[nodiscard]] const std::string& token(Role role) const { return tokens_.at(role); }
  /// "Authorization: Bearer …\r\n"; empty for Role::none.
  [[nodiscard]] std::string authorization(Role role) const;

  /// One request on a connection of its own.
  [[nodiscard]] Reply ask(std::string_view method, std::string_view target, Role role = Role::admin,
                          std::string_view body = {}, std::string_view headers = {}) const;
  [[nodiscard]] Reply get(std::string_view target, Role role = Role::read) const { return ask("GET", target, role); }

  static void one_run(const tests::Folder& folder) { store::write_done(folder, std::string(kRun), 0.9); }

 private:
  tests::Folder folder_;
  std::map<Role, std::string> tokens_;
  std::unique_ptr<Service> service_;
};

}  // namespace troupe::service
