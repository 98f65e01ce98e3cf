#include "service/api/routes.hpp"

namespace troupe::service {

void add_routes(Router& router, Context& context) {
  add_server_routes(router, context);
  add_run_routes(router, context);
  add_curve_routes(router, context);
  add_live_routes(router, context);
  add_file_routes(router, context);
  add_forecast_routes(router, context);
  add_journal_routes(router, context);
  add_export_routes(router, context);
  add_option_routes(router, context);
  add_catalogue_routes(router, context);
  add_dataset_routes(router, context);
  add_upload_routes(router, context);
  add_job_routes(router, context);
  add_node_routes(router, context);
  add_sweep_routes(router, context);
  add_dashboard_routes(router, context);
}

}  // namespace troupe::service
