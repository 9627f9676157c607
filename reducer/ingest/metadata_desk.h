#pragma once

#include "profile/metadata.h"
#include "reducer/metadata/metadata_sink.h"

namespace tributary::ingest {

// Takes the metadata of hosts, containers and pods from a shard's loop. No method waits. Several loops may use the desk
// at the same time. The calls for one session keep their order.
class MetadataDesk {
 public:
  // Records a connection of the sender. Returns false if too many connections wait to be recorded; the session must
  // then be refused, and the sender will connect again.
  virtual bool TryConnect(const MetadataSender& sender) = 0;
  // Records the end of a connection. Call it once after each TryConnect that returned true.
  virtual void Disconnect(const MetadataSender& sender) = 0;
  // Takes an update. Returns false if there is no space for it. The loop must then pass the same update later, and must
  // read nothing else from this session meanwhile.
  virtual bool TryTake(const MetadataSender& sender, MetadataUpdate update) = 0;

 protected:
  ~MetadataDesk() = default;
};

}  // namespace tributary::ingest
