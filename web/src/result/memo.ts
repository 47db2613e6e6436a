import { Component, createElement, type FunctionComponent } from "preact";

/** A component that is drawn again only when one of its properties is another one. */
export function memo<P extends object>(draw: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const names = Object.keys(next) as (keyof P)[];
      return names.some((name) => next[name] !== this.props[name as keyof typeof this.props]);
    }
    override render() {
      return createElement(draw, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
