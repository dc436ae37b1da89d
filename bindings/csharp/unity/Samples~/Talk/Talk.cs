// A character that says a play's lines while they are written. A thread generates; Update shows what is there.
using System.Collections.Concurrent;
using System.IO;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine;
using Vkformer;

public class Talk : MonoBehaviour
{
    [Tooltip("Folder of the model in Assets/StreamingAssets.")]
    public string model = "shakespeare";
    [TextArea] public string prompt = "ROMEO:";
    [Range(1, 400)] public int tokens = 120;
    [Range(0, 2)] public float temperature = 0.8f;
    public TextMesh text;

    private readonly ConcurrentQueue<string> pieces = new ConcurrentQueue<string>();
    private readonly CancellationTokenSource stop = new CancellationTokenSource();
    private Task talking;

    private void Start()
    {
        string folder = Path.Combine(Application.streamingAssetsPath, model);
        talking = Task.Run(() => Say(folder));
    }

    private void Say(string folder)
    {
        var options = new TextOptions { MaxNewTokens = tokens, Choice = new ChoiceOptions { Sample = 1, Temperature = temperature } };
        using (var device = new Device())
        using (var generator = new Generator(device, folder))
        {
            foreach (string piece in generator.Stream(prompt, options, stop.Token)) pieces.Enqueue(piece);
        }
    }

    private void Update()
    {
        string piece;
        while (pieces.TryDequeue(out piece)) text.text += piece;
        if (talking != null && talking.IsFaulted && !stop.IsCancellationRequested)
        {
            Debug.LogError(talking.Exception.GetBaseException().Message);
            talking = null;
        }
    }

    private void OnDestroy() { stop.Cancel(); }
}
