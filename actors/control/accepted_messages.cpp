#include "actors/control/accepted_messages.hpp"

#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

namespace {

using Check = bool (*)(ValueReader&, std::vector<RemoteHandle>&);

template <class... Ts>
bool is_of(ValueReader& reader, std::vector<RemoteHandle>& actors) {
  std::tuple<Ts...> values;
  ValueWalker walker(reader, actors);
  return std::apply([&](Ts&... each) { return walker(each...); }, values) && reader.at_end();
}

bool is_error(ValueReader& reader, std::vector<RemoteHandle>&) { return reader.plain_error() && reader.at_end(); }

template <class... Ts>
struct Message {};

using Table = std::map<std::string, Check, std::less<>>;

template <class... Ts>
void add(Table& table, Message<Ts...>) {
  std::string names = "@<>";
  for (const char* name : {caf::type_name<Ts>::value...}) names.append("+").append(name);
  table.emplace(std::move(names), is_of<Ts...>);
}
template <class... Messages>
Table table_of() {
  Table table;
  (add(table, Messages{}), ...);
  return table;
}

const Table& table(MessageUse use) {
  static const Table notifications =
      table_of<Message<Halt>, Message<MembershipNews>, Message<LeaseGrant>, Message<LeaseRequest>,
               Message<WorkerProgress>, Message<RunError>, Message<SiteLost>, Message<JournalRecords>,
               Message<TransferNews>, Message<Note>>();
  static const Table requests =
      table_of<Message<NodeQuery>, Message<GpuQuery>, Message<SiteOrder>, Message<CompileOrder>, Message<SiteAddresses>,
               Message<SiteDirectory>, Message<MeasureOrder>, Message<Prepare>, Message<Dismissal>,
               Message<UpdatesOrder>, Message<SettleOrder>, Message<StateOrder>, Message<PeerMessageCountsOrder>>();
  static const Table responses = [] {
    auto table = table_of<Message<NodeFacts>, Message<GpuReport>, Message<SiteOpened>, Message<SiteOpened, OpenedSite>,
                          Message<SiteReady>, Message<SiteReady, SiteMembers>, Message<SiteBegun>, Message<Measured>,
                          Message<SiteAddress>, Message<Dismissed>, Message<Updates>, Message<Settled>,
                          Message<MemberState>, Message<PeerMessageCounts>>();
    table.emplace("@<>+@error", is_error);
    return table;
  }();
  return use == MessageUse::notification ? notifications : use == MessageUse::request ? requests : responses;
}

}  // namespace

bool is_wire_message(ValueReader& content, MessageUse use, std::vector<RemoteHandle>& actors) {
  std::string types;
  if (!content.signature(types)) return false;
  const auto found = table(use).find(types);
  return found != table(use).end() && found->second(content, actors);
}

}  // namespace troupe::actors
