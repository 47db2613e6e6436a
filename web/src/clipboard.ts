/**
 * Copies text to the clipboard and returns whether that succeeded. Falls back to `execCommand`
 * because the Clipboard API requires a secure context.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const onCopy = (event: ClipboardEvent) => {
      event.clipboardData?.setData("text/plain", text);
      event.preventDefault();
    };
    document.addEventListener("copy", onCopy, { once: true });
    const copied = document.execCommand("copy");
    document.removeEventListener("copy", onCopy);
    return copied;
  }
}

/** Saves a file. Callers pass fixed names only, never names from data. */
export function download(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the URL after the click, so revoke it later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
