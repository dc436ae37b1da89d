#include "vkformer/rerank.h"

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "tasks/task_model.h"

namespace vkformer {

Result<Reranker> Reranker::load(const Device& device, const ModelSource& source,
                                const TaskOptions& options) {
  return guarded([&]() -> Result<Reranker> {
    VKF_ASSIGN(std::unique_ptr<TaskModel> model,
               load_task_model(device, source, TaskKind::kRerank, options));
    return HandleAccess::make<Reranker>(std::move(model));
  });
}

Result<std::vector<RankedDocument>> Reranker::rank(const std::string& query,
                                                   std::span<const std::string> documents,
                                                   const RerankOptions& options) {
  return guarded("The [documents] do not fit into memory; give fewer, or smaller batches.",
                 [&] { return rank_documents(*impl_, query, documents, options); });
}

}  // namespace vkformer
