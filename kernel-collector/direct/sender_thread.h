#pragma once

#include "kernel-collector/direct/batch_sender.h"
#include "otlp/pass_thread.h"

namespace tributary {

// Runs a BatchSender on its own thread. Call Wake after Push and AddSymbols.
class SenderThread : public otlp::PassThread<BatchSender> {
 public:
  using PassThread::PassThread;
  BatchSender& sender() { return work(); }
  const BatchSender& sender() const { return work(); }
};

}  // namespace tributary
