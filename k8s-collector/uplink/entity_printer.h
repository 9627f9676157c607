#pragma once

#include <cstdio>
#include <string>

#include "intake/metadata/metadata_feed.h"

namespace tributary {

// Prints the entities that a reducer would receive, each as a line with a JSON object: {"kind": …, "id": …, "from": …,
// "attributes": {…}}. An entity that ended at `from` also has "gone": true. The end of a snapshot is the line
// {"complete": true}. Use it on the thread of the feed.
class EntityPrinter {
 public:
  EntityPrinter(intake::MetadataFeed& feed, std::FILE* out) : feed_(feed), out_(out) {}
  void Print();  // prints the changes since the last call

 private:
  intake::MetadataFeed& feed_;
  std::FILE* const out_;
  intake::MetadataFeed::Cursor cursor_;
};

std::string EntityLine(const Entity& entity);

}  // namespace tributary
