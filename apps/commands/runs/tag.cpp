#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/commands/runs/runs.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"

namespace troupe::apps {
namespace {

struct RunsTagArguments {
  std::string directory = "runs";
  std::string run;
  std::vector<std::string> add, remove;
};

struct RunsNoteArguments {
  std::string directory = "runs";
  std::string run, text;
};

core::Result<store::RunNotes> change_notes_of(const std::string& directory, const std::string& run,
                                              const store::RunStore::Change& change) {
  auto store = open_store(directory);
  if (!store) return tl::unexpected(store.error());
  const auto named = find_run(store->database(), directory, run);
  if (!named) return tl::unexpected(named.error());
  return store->change_notes(named->path, change);
}

core::Result<void> run_runs_tag(const RunsTagArguments& arguments) {
  for (const auto& tag : arguments.add)
    if (auto checked = store::check_tag(tag); !checked) return checked;
  const auto notes = change_notes_of(arguments.directory, arguments.run, [&](store::RunNotes& all) {
    for (const auto& tag : arguments.remove) std::erase(all.tags, tag);
    all.tags.insert(all.tags.end(), arguments.add.begin(), arguments.add.end());
  });
  if (!notes) return tl::unexpected(notes.error());
  return print(notes->tags.empty() ? std::string("no tags\n") : fmt::format("{}\n", fmt::join(notes->tags, " ")));
}

core::Result<void> run_runs_note(const RunsNoteArguments& arguments) {
  if (arguments.text.size() > store::kLongestNote)
    return core::fail(core::Errc::usage, fmt::format("a note has at most {} bytes", store::kLongestNote));
  const auto notes =
      change_notes_of(arguments.directory, arguments.run, [&](store::RunNotes& all) { all.note = arguments.text; });
  if (!notes) return tl::unexpected(notes.error());
  return {};
}

Action declare_runs_tag(CLI::App& app) {
  const auto arguments = std::make_shared<RunsTagArguments>();
  app.add_option("RUN", arguments->run, "directory of a run, or the name that only one run has")->required();
  app.add_option("TAG", arguments->add, "tags to add: words without blanks and commas");
  app.add_option("--remove", arguments->remove, "tags to take away, divided by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_directory(app, arguments->directory);
  return [arguments] { return run_runs_tag(*arguments); };
}

Action declare_runs_note(CLI::App& app) {
  const auto arguments = std::make_shared<RunsNoteArguments>();
  app.add_option("RUN", arguments->run, "directory of a run, or the name that only one run has")->required();
  app.add_option("TEXT", arguments->text, "the note; \"\" removes it")->required();
  add_directory(app, arguments->directory);
  return [arguments] { return run_runs_note(*arguments); };
}

}  // namespace

Command runs_tag() {
  return {.name = "tag",
          .summary = "add tags to a run, or take them away, and print those that it has",
          .examples =
              "  troupe runs tag mnist-easgd paper best\n"
              "  troupe runs tag mnist-easgd --remove best\n",
          .declare = declare_runs_tag};
}

Command runs_note() {
  return {.name = "note",
          .summary = "write a note to a run, in place of the one that it has",
          .examples = "  troupe runs note mnist-easgd \"the figure of section 4\"\n",
          .declare = declare_runs_note};
}

}  // namespace troupe::apps
