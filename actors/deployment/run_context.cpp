#include "actors/deployment/run_context.hpp"

#include "data/fingerprint.hpp"

namespace troupe::actors {

core::Result<std::shared_ptr<RunContext>> RunContextCache::of(const std::string& secret, const std::string& config) {
  std::shared_ptr<CacheEntry> entry;
  {
    const std::scoped_lock lock(mutex_);
    // Drops the entries of ended runs: no site holds the context, and no caller makes one.
    std::erase_if(entries_, [&](const auto& cached) {
      if (cached.first == secret || cached.second.use_count() > 1) return false;
      const std::scoped_lock made(cached.second->making);  // free; orders this read after the last caller's write
      return cached.second->context.expired();
    });
    auto& known = entries_[secret];
    if (!known) known = std::make_shared<CacheEntry>();
    entry = known;
  }
  const std::scoped_lock lock(entry->making);
  if (auto context = entry->context.lock()) return context;
  auto made = make(config);
  if (made) entry->context = *made;
  return made;
}

core::Result<std::shared_ptr<RunContext>> RunContextCache::make(const std::string& text) const {
  auto config = core::Config::parse(experiment::schema(), text, "configuration of the run", {});
  if (!config) return tl::unexpected(config.error());
  auto settings = experiment::resolve(std::move(*config), experiment::Use::processes);
  if (!settings) return tl::unexpected(settings.error());
  settings->data.staged = staged_;
  auto spec = experiment::build_run_spec(*settings, true);
  if (!spec) return tl::unexpected(spec.error());
  auto data = data::fingerprint(spec->source);
  if (!data) return tl::unexpected(data.error());
  auto backend = make_backend_(*settings);
  if (!backend) return tl::unexpected(backend.error());
  return std::make_shared<RunContext>(RunContext{std::move(*spec), *data, std::move(*backend), {}, {}});
}

}  // namespace troupe::actors
