/** Puts text on the clipboard; says whether it is there. Pages that came without TLS may not use the newer way. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const listen = (event: ClipboardEvent) => {
      event.clipboardData?.setData("text/plain", text);
      event.preventDefault();
    };
    document.addEventListener("copy", listen, { once: true });
    const copied = document.execCommand("copy");
    document.removeEventListener("copy", listen);
    return copied;
  }
}

/** Gives a file to the user. Its name is always ours. */
export function download(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser reads the address after the click, so it is taken back a little later.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
