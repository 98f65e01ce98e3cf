/// Short names for the types of experiment/ that actors use often.
#pragma once

#include "experiment/directory/run_directory.hpp"
#include "experiment/directory/run_records.hpp"
#include "experiment/exchange_plan.hpp"
#include "experiment/progress_aggregator.hpp"
#include "experiment/reports.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/settings.hpp"
#include "experiment/state/checkpoint.hpp"
#include "experiment/state/shard_memory.hpp"
#include "experiment/state/start_state.hpp"
#include "experiment/state/worker_memory.hpp"

namespace troupe::actors {

using experiment::BorrowedView;
using experiment::Checkpoint;
using experiment::EpochReport;
using experiment::EvaluationReport;
using experiment::ExchangePlan;
using experiment::LeaseGranted;
using experiment::LedgerReport;
using experiment::MemberReport;
using experiment::MetricsWriter;
using experiment::Note;
using experiment::optimizer_prefix;
using experiment::optimizer_state;
using experiment::PlanRecord;
using experiment::ProgressAggregator;
using experiment::RunDirectory;
using experiment::RunEnd;
using experiment::RunSpec;
using experiment::RunStarted;
using experiment::RunTotals;
using experiment::server_state_prefix;
using experiment::Settings;
using experiment::ShardMemory;
using experiment::SnapshotRecord;
using experiment::StartState;
using experiment::Summary;
using experiment::WorkerMemory;
using experiment::WorkerProgress;

}  // namespace troupe::actors
