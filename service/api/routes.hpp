/// The routes of all resources, one file each. `context` outlives the router. Thread rule: call them before the server starts.
#pragma once

#include "service/api/context.hpp"
#include "service/http/router.hpp"

namespace troupe::service {

void add_run_routes(Router& router, Context& context);        // list, details, notes, removal, compare
void add_curve_routes(Router& router, Context& context);      // curves
void add_live_routes(Router& router, Context& context);       // state and events of a run, events of all
void add_file_routes(Router& router, Context& context);       // config, summary, plan, notes, checkpoints
void add_forecast_routes(Router& router, Context& context);   // forecast of a run
void add_journal_routes(Router& router, Context& context);    // events of a journal
void add_export_routes(Router& router, Context& context);     // export.zip
void add_option_routes(Router& router, Context& context);     // options, check
void add_catalogue_routes(Router& router, Context& context);  // strategies, optimizers, models
void add_server_routes(Router& router, Context& context);     // health, metrics, session, server, openapi.json
void add_dataset_routes(Router& router, Context& context);    // datasets
void add_upload_routes(Router& router, Context& context);     // uploads of data sets
void add_job_routes(Router& router, Context& context);        // jobs
void add_node_routes(Router& router, Context& context);       // nodes
void add_sweep_routes(Router& router, Context& context);      // sweeps
void add_dashboard_routes(Router& router, Context& context);  // the pages

/// All of the above.
void add_routes(Router& router, Context& context);

}  // namespace troupe::service
