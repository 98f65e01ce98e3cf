/// Plays a history: starts nodes and the process that trains, does what happens at its moment, resumes the run until it is done, and
/// says what it saw. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/folder.hpp"
#include "tests/histories/conduct.hpp"
#include "tests/histories/history.hpp"
#include "tests/histories/record.hpp"
#include "tests/nodes/process.hpp"

namespace troupe::histories {

struct Outcome {
  std::string run;                   ///< its directory; empty: none has come about
  std::vector<std::string> log{};    ///< what was done and what was seen, in order
  std::vector<std::string> wrong{};  ///< what the documentation does not allow
  nlohmann::json summary{};          ///< as the last session has printed it
  bool lost = false;                 ///< a worker was, in some session
  bool crashed =
      false;  ///< the process that trains was, or a session ended with 75: the end of its journal may be missing
};

class Player {
 public:
  /// The folder holds everything that the history leaves behind.
  Player(const History& history, const tests::Folder& folder);
  [[nodiscard]] Outcome play();
  /// What all processes have said, for a person to read.
  [[nodiscard]] std::string everything_said();

 private:
  struct Node {
    std::unique_ptr<nodes::NodeProcess> process{};
    std::uint16_t port = 0;
    std::string said{};  // by those before
  };
  struct Resume {
    std::uint32_t nodes = 0;
    std::uint32_t workers = 0;
  };

  void start_node(std::uint32_t k);
  [[nodiscard]] bool runs(std::uint32_t k);
  [[nodiscard]] std::uint32_t nodes_up();
  [[nodiscard]] std::vector<std::uint32_t> members_of(std::uint32_t nodes);
  [[nodiscard]] std::string name(std::uint32_t k) const;

  [[nodiscard]] std::vector<std::string> first_command();
  [[nodiscard]] std::vector<std::string> resume_command(const Resume& how);
  /// What a resume says that goes on without nodes, whatever the run had.
  [[nodiscard]] static std::vector<std::string> in_one_process();
  void run_session(std::vector<std::string> command);
  [[nodiscard]] bool await_begin();
  /// Kills the process when the run's directory has a file more, if that is what comes next.
  void cut();
  /// False: the session has ended before.
  [[nodiscard]] bool await(const std::function<bool()>& there);
  [[nodiscard]] bool await_moment(const Event& event);
  /// Until `sign` was said so often; false: the session has ended without.
  [[nodiscard]] bool await_said(const std::string& sign, std::size_t times);
  void do_events();
  void act(const Event& event);
  void lose(std::uint32_t node);
  void silence(std::uint32_t node);
  void bring(std::uint32_t node);
  void await_newcomer(std::uint32_t node, std::size_t times);
  void look_beside(const std::vector<std::string>& command, int code);
  void check_end(int code);
  void await_free();
  void end_nodes();
  [[nodiscard]] bool over();
  [[nodiscard]] bool finite() const { return history_.epochs > 0 || finishing_; }
  void say(const std::string& what);
  void wrong(const std::string& what);

  const History& history_;
  const tests::Folder& folder_;
  Conduct conduct_;
  std::vector<Node> nodes_;
  std::unique_ptr<nodes::Process> train_;
  std::unique_ptr<Progress> progress_;
  std::vector<std::string> said_;  // by sessions before
  Outcome outcome_;
  Session session_;
  std::set<std::uint32_t> members_;  // nodes of the session
  std::set<std::uint32_t> lost_;     // of these, that are not back
  std::set<std::uint32_t> harmed_;   // of these, that may be called lost
  std::size_t next_ = 0;             // event
  std::size_t sessions_begun_ = 0;   // before this one
  std::uint64_t mark_ = 0;           // steps of the session when the last event was done
  std::uint32_t workers_ = 0;
  std::uint64_t last_epoch_ = 0;  // of a run that has one
  std::vector<Resume> how_;       // to go on, as the event that ended the session has it; or nothing
  bool finishing_ = false;
  bool gave_up_ = false;
};

}  // namespace troupe::histories
