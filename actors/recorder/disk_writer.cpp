#include "actors/recorder/disk_writer.hpp"

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

DiskWriterActor::behavior_type disk_writer(DiskWriterActor::pointer self) {
  return {
      [](const DiskJob& job) { return DiskJobDone{job.run()}; },
      [self](const Halt&) { self->quit(); },
  };
}

}  // namespace troupe::actors
