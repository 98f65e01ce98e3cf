#include "tests/histories/accounts.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

namespace troupe::histories {

namespace {

constexpr std::int64_t kFree = -1, kPassed = -2;
constexpr auto kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// The owner of each position of the epoch: a lease's number, kFree, or kPassed (never trained).
class Epoch {
 public:
  Epoch(std::uint32_t number, std::int64_t size) : number_(number), owners_(static_cast<std::size_t>(size), kFree) {}
  Epoch(const Start& start, std::int64_t size)
      : number_(start.epoch), owners_(static_cast<std::size_t>(size), kPassed - 1) {
    for (const auto& [first, count] : start.free) fill(first, count, kFree);
  }

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(owners_.size()); }
  /// Length of the sequence from `first` on, at most `count`, whose positions have this owner.
  [[nodiscard]] std::int64_t run(std::int64_t first, std::int64_t count, std::int64_t owner) const {
    std::int64_t length = 0;
    while (length < count && first + length < size() && at(first + length) == owner) ++length;
    return length;
  }
  void fill(std::int64_t first, std::int64_t count, std::int64_t owner) {
    for (auto i = first; i < first + count && i < size(); ++i) owners_[static_cast<std::size_t>(i)] = owner;
  }
  [[nodiscard]] std::int64_t free_positions() const { return std::ranges::count(owners_, kFree); }
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> free() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (std::int64_t i = 0; i < size(); ++i) {
      if (at(i) != kFree) continue;
      const auto length = run(i, size(), kFree);
      ranges.emplace_back(i, length);
      i += length;
    }
    return ranges;
  }

 private:
  [[nodiscard]] std::int64_t at(std::int64_t i) const { return owners_[static_cast<std::size_t>(i)]; }
  std::uint32_t number_;
  std::vector<std::int64_t> owners_;
};

/// One worker from its beginning to its loss.
struct Life {
  struct Held {
    Piece piece;
    bool lost = false;
  };
  std::vector<Held> leases{};
  std::optional<std::uint64_t> first{};  // step of the first lease
  std::set<std::uint64_t> trained{};     // steps
  bool guessed = false;                  // `first` is the step of the first record in the journal
  bool ended = false;                    // lost
};
struct Worker {
  std::vector<Life> lives{1};
  std::size_t ran = 0;  // index of the life that began last
};

/// One session, from a start of `troupe train` to its end. Only what the next session's start state includes counts.
class SessionAccount {
 public:
  SessionAccount(const RunFacts& facts, std::optional<Start> start, int segment, std::uint64_t limit, Accounts& into)
      : facts_(facts),
        limit_(limit),
        into_(into),
        epoch_(start ? Epoch(*start, facts.epoch_size) : Epoch(0, facts.epoch_size)) {
    segment_ = segment;
    from_middle_ = start && !start->resumed;
  }

  void segment(const Segment& segment, bool first) {
    if (!first && segment.start->next_lease > limit_) return;  // the next session began before it: it is undone
    segment_ = segment.number;
    if (!first) check_start(*segment.start);
    closed_ = segment.closed;
    for (const auto& entry : segment.entries) std::visit([this](const auto& e) { add(e); }, entry);
  }

  /// `next`: the start state of the next session; null: the run ends with this one.
  void end(const Start* next) {
    if (next) check_start(*next);
    for (const auto& [number, worker] : workers_)
      for (std::size_t k = 0; k < worker.lives.size(); ++k)
        settle(number, worker.lives[k], k + 1 == worker.lives.size());
    into_.epochs = epoch_.free_positions() == 0 ? epoch_.number() + 1 : epoch_.number();
  }

 private:
  void wrong(const std::string& what) { into_.wrong.push_back(fmt::format("journal-{:04}: {}", segment_, what)); }

  void add(const Granted& granted) {
    const auto& piece = granted.piece;
    if (piece.lease >= limit_) return;
    if (!leases_.emplace(piece.lease, granted.worker).second)
      wrong(fmt::format("lease {} is granted twice", piece.lease));
    if (piece.epoch != epoch_.number()) next_epoch(piece);
    const auto covers = epoch_.run(piece.first, piece.count, kFree);
    // A share of the last round may lie behind the epoch's end. It then repeats samples of others.
    if (covers == 0 && !facts_.in_step)
      wrong(fmt::format("lease {} of epoch {} begins at sample {}, which is somebody's already", piece.lease,
                        piece.epoch, piece.first));
    epoch_.fill(piece.first, covers, static_cast<std::int64_t>(piece.lease));
    workers_[granted.worker].lives.back().leases.push_back({piece});
  }

  void next_epoch(const Piece& piece) {
    if (piece.epoch != epoch_.number() + 1)
      wrong(fmt::format("epoch {} follows epoch {}", piece.epoch, epoch_.number()));
    check_whole();
    epoch_ = Epoch(piece.epoch, facts_.epoch_size);
  }

  void check_whole() {
    if (const auto left = epoch_.free_positions(); left > 0)
      wrong(fmt::format("{} samples of epoch {} were never granted, and nothing says so", left, epoch_.number()));
  }

  void add(const Lost& lost) {
    for (const auto& piece : lost.pieces) {
      if (piece.lease >= limit_) continue;
      const bool granted = leases_.contains(piece.lease);
      if (granted && leases_[piece.lease] != lost.worker)
        wrong(fmt::format("worker {} loses lease {}, which worker {} has", lost.worker, piece.lease,
                          leases_[piece.lease]));
      if (!granted && (lost.again || !facts_.in_step))
        wrong(fmt::format("worker {} loses lease {}, which it was never granted", lost.worker, piece.lease));
      const auto owner = granted ? static_cast<std::int64_t>(piece.lease) : kFree;
      const auto covers = epoch_.run(piece.first, piece.count, owner);
      if (piece.epoch != epoch_.number() || covers != piece.count)
        wrong(fmt::format("worker {} loses {} samples from {} on of epoch {}, of which it has {}", lost.worker,
                          piece.count, piece.first, piece.epoch, covers));
      epoch_.fill(piece.first, covers, lost.again ? kFree : kPassed);
      if (!lost.again) into_.passed_over += static_cast<std::uint64_t>(covers);
      for (auto& held : workers_[lost.worker].lives.back().leases) held.lost |= held.piece.lease == piece.lease;
    }
    auto& lives = workers_[lost.worker].lives;
    lives.back().ended = true;
    lives.emplace_back();
  }

  void add(const Begun& begun) {
    auto& worker = workers_[begun.worker];
    worker.ran = worker.lives.size() - 1;
    auto& life = worker.lives.back();
    if (life.first)
      wrong(fmt::format("worker {} begins twice, at step {} and at step {}", begun.worker, *life.first, begun.step));
    life.first = begun.step;
  }
  void add(const Trained& trained) {
    auto& worker = workers_[trained.worker];
    auto& life = worker.lives[worker.ran];
    if (!life.first) {
      if (!from_middle_)
        return wrong(fmt::format("worker {} trains step {} before it begins", trained.worker, trained.step));
      life.first = trained.step;
      life.guessed = true;
    }
    if (!life.trained.insert(trained.step).second)
      wrong(fmt::format("worker {} trains step {} twice", trained.worker, trained.step));
  }

  /// A segment or session must begin in the state that the segments before it lead to.
  void check_start(const Start& start) {
    if (start.epoch == epoch_.number() + 1) {
      check_whole();
      epoch_ = Epoch(start.epoch, facts_.epoch_size);
    }
    if (start.epoch != epoch_.number()) {
      wrong(fmt::format("what follows begins in epoch {}, and this ends in epoch {}", start.epoch, epoch_.number()));
    } else if (start.free != epoch_.free()) {
      wrong(fmt::format("what follows begins epoch {} with {} samples to be granted, and this leaves {}", start.epoch,
                        text(start.free), text(epoch_.free())));
    }
  }

  static std::string text(const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) {
    std::string all;
    for (const auto& [first, count] : ranges)
      all += fmt::format("{}[{}, {})", all.empty() ? "" : " ", first, first + count);
    return all.empty() ? "no" : all;
  }

  /// The n-th lease of a life belongs to its n-th step.
  void settle(std::uint32_t worker, const Life& life, bool last) {
    for (std::size_t n = 0; n < life.leases.size(); ++n) {
      const auto& [piece, lost] = life.leases[n];
      const auto step = life.first.value_or(0) + n;
      const bool has =
          life.guessed && facts_.passes_over ? n < life.trained.size() : life.first && life.trained.contains(step);
      if (lost) {
        ++into_.steps_most;  // it may have been done and not reported
      } else if (has || may_miss(life, last, step)) {
        ++into_.steps;
        ++into_.steps_most;
        into_.samples += static_cast<std::uint64_t>(piece.count);
      } else if (facts_.passes_over) {
        into_.passed_over += static_cast<std::uint64_t>(piece.count);
      } else {
        wrong(fmt::format("lease {} of epoch {} counts as done, and worker {} has no step {} for it", piece.lease,
                          piece.epoch, worker, step));
      }
    }
  }

  /// Whether the record of this step may be missing: lost with the worker, or with the process that wrote the journal.
  [[nodiscard]] bool may_miss(const Life& life, bool last, std::uint64_t step) const {
    if (!life.ended && (closed_ || !last)) return false;
    return !life.first || life.trained.empty() || step > *life.trained.rbegin();
  }

  const RunFacts& facts_;
  std::uint64_t limit_;
  Accounts& into_;
  Epoch epoch_;
  int segment_ = 1;
  bool from_middle_ = false;
  bool closed_ = false;
  std::map<std::uint64_t, std::uint32_t> leases_;  // → worker
  std::map<std::uint32_t, Worker> workers_;
};

}  // namespace

Accounts account(const RunFacts& facts, const std::vector<Segment>& segments) {
  Accounts accounts;
  for (std::size_t k = 1; k < segments.size(); ++k) {
    if (segments[k].number != segments[k - 1].number + 1)
      accounts.wrong.push_back(
          fmt::format("journal-{:04} follows journal-{:04}", segments[k].number, segments[k - 1].number));
    if (!segments[k].start)
      accounts.wrong.push_back(fmt::format("journal-{:04} has no start state", segments[k].number));
  }
  if (segments.empty()) accounts.wrong.emplace_back("there is no journal");
  if (!accounts.wrong.empty()) return accounts;
  const auto end_of_session = [&](std::size_t begin) {
    auto end = begin + 1;
    while (end < segments.size() && !segments[end].start->resumed) ++end;
    return end;
  };
  // The first session's beginning may be missing. Then the next session may have undone all that is present of it.
  std::size_t first = 0;
  for (auto next = end_of_session(first); next < segments.size() && segments[first].start &&
                                          segments[first].start->next_lease > segments[next].start->next_lease;
       next = end_of_session(first))
    first = next;
  if (const auto& start = segments[first].start) {
    accounts.steps = accounts.steps_most = start->steps;
    accounts.samples = start->samples;
  }
  for (auto begin = first; begin < segments.size();) {
    const auto end = end_of_session(begin);
    const auto* next = end < segments.size() ? &*segments[end].start : nullptr;
    SessionAccount session(facts, segments[begin].start, segments[begin].number, next ? next->next_lease : kNoLimit,
                           accounts);
    for (auto k = begin; k < end; ++k) session.segment(segments[k], k == begin);
    session.end(next);
    begin = end;
  }
  return accounts;
}

}  // namespace troupe::histories
