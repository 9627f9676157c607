#pragma once

#include "intake/metadata/metadata_feed.h"
#include "profile/attributes.h"
#include "profile/batch.h"

namespace tributary {

// Finds the resource attributes of a process, from what its node knows: the process's own attributes, its container as
// Docker describes it, the ids in the path of its cgroup, and the host. The reducer's ResourceJoiner does the same with
// the metadata of a cluster. Both use ResourceMerger. Loop thread only. Costs about 10 µs per process.
class NodeResources {
 public:
  // `feed` must outlive this object.
  NodeResources(SessionInfo session, const intake::MetadataFeed& feed) : session_(std::move(session)), feed_(feed) {}

  // `dictionary` has the texts of `process`.
  Attributes Of(const Process& process, const Dictionary& dictionary) const;

 private:
  const SessionInfo session_;
  const intake::MetadataFeed& feed_;
};

}  // namespace tributary
